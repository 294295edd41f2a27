"""Catalogue of dashboards, most important first."""

from tools.dashboards import cost, data_quality, game, inference, league, optimizer, system, training

BOARDS = (data_quality.BOARD, training.BOARD, league.BOARD, game.BOARD, inference.BOARD, optimizer.BOARD, system.BOARD,
          cost.BOARD)
