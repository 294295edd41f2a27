"""Running mean and standard deviation of everything the network reads (Berner et al. 2019, appendix H).

Every float, booleans included, is standardised with the statistics of all data ever seen and clipped. A field of one
kind of row has one pair of statistics, taken over the rows that are present: a unit means the same in whichever
slot of its group it stands. The statistics are buffers, so that they are part of a version.
"""

import torch
from torch import Tensor, nn

from five.agent.model.inputs import Inputs

EPSILON = 1e-6  # added to a variance; float16 observations carry no meaning below a standard deviation of 1e-3


class RunningStatistics(nn.Module):
    """Count, mean and summed squared deviation of ``width`` fields, merged batch by batch in float64.

    Raw moments are additive across processes: each one takes ``moments`` of its own data about the mean that all
    share, the sums are added up, and every process merges the same total.
    """

    count: Tensor
    mean: Tensor
    squares: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        for name in ("count", "mean", "squares"):
            self.register_buffer(name, torch.zeros(width, dtype=torch.float64))

    @torch.no_grad()
    def moments(self, values: Tensor) -> Tensor:
        """float64 [3, width]: count, sum and sum of squares of ``values`` [..., width] about the running mean."""
        return self.about_the_mean(*row_sums(values, None))

    def about_the_mean(self, count: Tensor, near: Tensor, total: Tensor, squares: Tensor) -> Tensor:
        """`moments` float64 [3, width] out of `row_sums` [width] each."""
        near, total, squares = near.double(), total.double(), squares.double()
        apart = near - self.mean
        return torch.stack((count, total + count * apart, squares + 2.0 * apart * total + count * apart.square()))

    @torch.no_grad()
    def merge(self, moments: Tensor) -> None:
        """Takes in ``moments`` [3, width], which were taken about the present mean."""
        new, total, squares = moments.to(self.mean)
        count = self.count + new
        shift = torch.where(count > 0, total / count.clamp_min(1.0), 0.0)
        self.squares.add_(squares - count * shift.square()).clamp_min_(0.0)
        self.mean.add_(shift)
        self.count.copy_(count)

    def standard(self) -> tuple[Tensor, Tensor]:
        """float32 (scale, shift) so that ``x * scale + shift`` is standardised; (1, 0) where nothing was seen."""
        variance = self.squares / self.count.clamp_min(1.0)
        scale = torch.where(self.count > 0, (variance + EPSILON).rsqrt(), 1.0)
        return scale.float(), (-self.mean * scale).float()


def row_sums(values: Tensor, there: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Of each field of ``values`` [R, ..., fields]: the count, float64; a mean of the batch; the sums of the values and
    of their squares about that, in float32, which is exact enough so near to their mean. [fields] each.

    ``there`` bool [R]: which rows count; the others are zeros.
    """
    rows = values.reshape(values.shape[:-1].numel(), values.shape[-1])
    count = rows.new_zeros(rows.shape[1], dtype=torch.float64)
    if there is None:
        near = rows.sum(0, dtype=torch.float32) / max(rows.shape[0], 1)
        centred = rows - near
        count += rows.shape[0]
    else:
        number = there.sum() * values.shape[1:-1].numel()
        near = rows.sum(0, dtype=torch.float32) / number.clamp_min(1)
        absent = ~there.view(-1, *[1] * (values.dim() - 1))
        centred = (values - near).masked_fill_(absent, 0.0).view(rows.shape)
        count += number
    return count, near, centred.sum(0), centred.square_().sum(0)


class Normaliser(RunningStatistics):
    """Statistics of named streams of rows, kept as one vector. A stream of several groups (the towers of units) has
    statistics for each."""

    def __init__(self, widths: dict[str, tuple[int, int]], clip: float) -> None:
        super().__init__(sum(groups * fields for groups, fields in widths.values()))
        self.clip = clip
        self.columns: dict[str, tuple[int, int, int]] = {}
        start = 0
        for name, (groups, fields) in widths.items():
            self.columns[name] = (start, groups, fields)
            start += groups * fields

    def forward(self, inputs: Inputs) -> dict[str, Tensor]:
        """Each stream [..., fields] standardised and clipped, float32."""
        scale, shift = self.standard()
        by_group = inputs.groups
        normal = {}
        for name, values in inputs.floats.items():
            start, groups, fields = self.columns[name]
            end = start + groups * fields
            factors, offsets = (x[start:end].view(groups, fields) for x in (scale, shift))
            sizes = by_group.get(name, [len(values)])
            out = normal[name] = torch.empty_like(values)
            pieces = zip(torch.split(values, sizes), torch.split(out, sizes), factors, offsets, strict=True)
            for piece, into, factor, offset in pieces:
                torch.addcmul(offset, piece, factor, out=into)
            out.clamp_(-self.clip, self.clip)
        return normal

    def standardised(self, name: str, values: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        """A stream [..., fields] that has one group, by what `standard` gave."""
        start, groups, fields = self.columns[name]
        span = slice(start, start + groups * fields)
        return torch.addcmul(shift[span], values, scale[span]).clamp_(-self.clip, self.clip)

    def stream_moments(self, inputs: Inputs) -> Tensor:
        """float64 [3, width] of a batch; add up across processes, then ``merge``."""
        by_group = inputs.groups
        parts = []
        for name in self.columns:
            values = inputs.floats[name]
            sizes = by_group.get(name, [len(values)])
            there = torch.split(inputs.there[name], sizes) if name in inputs.there else [None] * len(sizes)
            parts += [row_sums(piece, mine) for piece, mine in zip(torch.split(values, sizes), there, strict=True)]
        return self.about_the_mean(*map(torch.cat, zip(*parts, strict=True)))


REWARD_PRIOR = 65_536.0


class RewardStatistics(RunningStatistics):
    """Running standard deviation of rewards, by which they are divided before advantages are computed
    (Berner et al. 2019, section 3.2). Rewards are not centred: a constant reward stays a reward.

    ``prior`` rewards of deviation 1 count as seen. Games begin with a quiet stretch: the deviation of its few rewards
    alone would blow up the first returns, and with them Adam's second moments for thousands of steps.
    """

    def __init__(self, prior: float = 0.0) -> None:
        super().__init__(1)
        self.prior = prior

    def std(self) -> float:
        """Square root of the variance; 1.0 while no reward was seen or all were equal."""
        return float(self.deviation())

    def deviation(self) -> Tensor:
        """What `std` says, float64 [] on the statistics' device."""
        variance = (self.squares[0] + self.prior) / (self.count[0] + self.prior).clamp_min(1e-300)
        return torch.where(variance > 0, variance.sqrt(), 1.0)

    def merge_sums(self, sums: Tensor) -> None:
        """Takes in rewards given as float64 [3], their number, sum and sum of squares (about zero), as rollouts send
        them; zeros change nothing."""
        count, total, squares = sums.to(self.mean).unbind()
        mean = self.mean[0]
        centred = (count, total - count * mean, squares - 2.0 * mean * total + count * mean * mean)
        self.merge(torch.stack(centred)[:, None])
