"""Running mean and standard deviation of every number that the network reads (Berner et al. 2019, appendix H).

Every float, booleans included, is standardised with the statistics of all data so far and clipped. A field of one kind
of row has one pair of statistics over the present rows, because a unit means the same in every slot of its group. The
statistics are buffers and therefore part of a version.
"""

import torch
from torch import Tensor, nn

from five.agent.model.inputs import Inputs

EPSILON = 1e-6  # Added to variances: float16 observations mean nothing below a standard deviation of 1e-3.


class RunningStatistics(nn.Module):
    """Count, mean and summed squared deviation of ``width`` fields, merged batch by batch in float64.

    Each process takes ``moments`` of its own data about the common mean. Their sum or their average over the processes
    has the mean and deviation of all data, and every process merges the same one.
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
        """Return float64 [3, width]: count, sum and sum of squares of ``values`` [..., width] about the running
        mean."""
        return self.moments_about_mean(*row_sums(values, None))

    def moments_about_mean(self, count: Tensor, pivot: Tensor, total: Tensor, squares: Tensor) -> Tensor:
        """Return `moments` float64 [3, width] from the results of `row_sums` [width] each."""
        pivot, total, squares = pivot.double(), total.double(), squares.double()
        offset = pivot - self.mean
        return torch.stack((count, total + count * offset, squares + 2.0 * offset * total + count * offset.square()))

    @torch.no_grad()
    def merge(self, moments: Tensor) -> None:
        """Merge ``moments`` [3, width], which were taken about the present mean."""
        new, total, squares = moments.to(self.mean)
        count = self.count + new
        shift = torch.where(count > 0, total / count.clamp_min(1.0), 0.0)
        self.squares.add_(squares - count * shift.square()).clamp_min_(0.0)
        self.mean.add_(shift)
        self.count.copy_(count)

    def scale_and_shift(self) -> tuple[Tensor, Tensor]:
        """Return float32 (scale, shift) with ``x * scale + shift`` standardised; (1, 0) without data."""
        variance = self.squares / self.count.clamp_min(1.0)
        scale = torch.where(self.count > 0, (variance + EPSILON).rsqrt(), 1.0)
        return scale.float(), (-self.mean * scale).float()


def row_sums(values: Tensor, is_present: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return sums of each field of ``values`` [R, ..., fields], [fields] each.

    They are the count, float64; the batch mean as pivot; and the sums of the differences from it and of their squares,
    in float32, which is exact enough so close to the mean. ``is_present`` bool [R] masks rows, which must be zeros.
    """
    rows = values.reshape(values.shape[:-1].numel(), values.shape[-1])
    count = rows.new_zeros(rows.shape[1], dtype=torch.float64)
    if is_present is None:
        pivot = rows.sum(0, dtype=torch.float32) / max(rows.shape[0], 1)
        centred = rows - pivot
        count += rows.shape[0]
    else:
        number = is_present.sum() * values.shape[1:-1].numel()
        pivot = rows.sum(0, dtype=torch.float32) / number.clamp_min(1)
        absent = ~is_present.view(-1, *[1] * (values.dim() - 1))
        centred = (values - pivot).masked_fill_(absent, 0.0).view(rows.shape)
        count += number
    return count, pivot, centred.sum(0), centred.square_().sum(0)


class Normaliser(RunningStatistics):
    """Statistics of named feature streams in one vector. A stream of several groups has statistics for each."""

    def __init__(self, widths: dict[str, tuple[int, int]], clip: float) -> None:
        super().__init__(sum(groups * fields for groups, fields in widths.values()))
        self.clip = clip
        self.columns: dict[str, tuple[int, int, int]] = {}
        start = 0
        for name, (groups, fields) in widths.items():
            self.columns[name] = (start, groups, fields)
            start += groups * fields

    def forward(self, inputs: Inputs) -> dict[str, Tensor]:
        """Return each stream [..., fields] standardised and clipped, float32."""
        scale, shift = self.scale_and_shift()
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

    def standardise(self, name: str, values: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        """Return a stream [..., fields] of one group standardised by ``scale`` and ``shift``, and clipped."""
        start, groups, fields = self.columns[name]
        span = slice(start, start + groups * fields)
        return torch.addcmul(shift[span], values, scale[span]).clamp_(-self.clip, self.clip)

    def stream_moments(self, inputs: Inputs) -> Tensor:
        """Return float64 [3, width] of a batch; average them over the optimizers, then ``merge``."""
        by_group = inputs.groups
        parts = []
        for name in self.columns:
            values = inputs.floats[name]
            sizes = by_group.get(name, [len(values)])
            masks = torch.split(inputs.is_present[name], sizes) if name in inputs.is_present else [None] * len(sizes)
            parts += [row_sums(piece, mine) for piece, mine in zip(torch.split(values, sizes), masks, strict=True)]
        return self.moments_about_mean(*map(torch.cat, zip(*parts, strict=True)))


REWARD_PRIOR = 65_536.0  # rewards; not in the paper


class RewardStatistics(RunningStatistics):
    """Running standard deviation of rewards, which divides them before advantages are computed (Berner et al. 2019,
    section 3.2). Rewards are not centred: a constant reward stays a reward.

    ``prior`` rewards of deviation 1 count as seen. Few rewards occur at the start of a game. Their deviation alone
    would inflate the first returns, and with them Adam's second moments for thousands of steps.
    """

    def __init__(self, prior: float = 0.0) -> None:
        super().__init__(1)
        self.prior = prior

    def std(self) -> float:
        """Return the standard deviation; 1.0 before any reward and while all were equal."""
        return float(self.deviation())

    def deviation(self) -> Tensor:
        """Return the standard deviation as float64 [] on the statistics' device."""
        variance = (self.squares[0] + self.prior) / (self.count[0] + self.prior).clamp_min(1e-300)
        return torch.where(variance > 0, variance.sqrt(), 1.0)

    def merge_sums(self, sums: Tensor) -> None:
        """Merge rewards given as float64 [3]: count, sum and sum of squares about zero. Zeros change nothing."""
        count, total, squares = sums.to(self.mean).unbind()
        mean = self.mean[0]
        centred = (count, total - count * mean, squares - 2.0 * mean * total + count * mean * mean)
        self.merge(torch.stack(centred)[:, None])
