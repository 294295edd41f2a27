"""Map encoders of several sizes."""

import pytest
import torch

from five.agent.model.map_encoder import MapEncoder


@pytest.mark.parametrize("side", [1, 2, 3, 4, 5, 8, 10, 16])
def test_width_matches_the_output(side: int) -> None:
    net = MapEncoder(side, 3, 4) if side > 1 else None
    if net is None:
        with pytest.raises(ValueError, match="2 cells"):
            MapEncoder(side, 3, 4)
        return
    out = net(torch.randn(2, 5, side * side, 3))
    assert out.shape == (2, 5, net.width) and net.width > 0


def test_cells_are_row_major() -> None:
    net = MapEncoder(3, 2, 4)
    cells = torch.randn(1, 9, 2)
    image = cells.view(1, 3, 3, 2).permute(0, 3, 1, 2)
    expected = torch.relu(torch.nn.functional.conv2d(image, net.first.weight, net.first.bias))
    assert net.second is not None
    expected = torch.relu(net.second(expected)).flatten(1)
    torch.testing.assert_close(net(cells), expected)
