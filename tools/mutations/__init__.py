"""Mutation tests: how many small changes of the code the tests notice. Run with ``make test-mutations``.

cosmic-ray makes the mutants. This package samples them, runs the tests that execute the changed lines in copies of the
tree, and reports which mutants survive.
"""
