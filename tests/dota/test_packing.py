"""Packing of 16-bit arrays: round trips, and refusal of malformed bytes."""

from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dota import _core
from dota.packing import pack_f16, unpack_f16
from dota.vec_game import VecGame
from tests.dota.watching import duel

VALUES = st.lists(st.one_of(st.just(0), st.integers(0, 65535)), max_size=300)


@settings(max_examples=300, deadline=None)
@given(VALUES)
def test_round_trip(values: list[int]) -> None:
    array = np.array(values, np.uint16)
    packed = pack_f16(array)
    assert len(packed) == (len(values) + 7) // 8 + 2 * np.count_nonzero(array)
    out = np.full(len(values), 7, np.uint16)
    unpack_f16(packed, out)
    np.testing.assert_array_equal(out, array)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=80), st.integers(0, 200))
def test_any_bytes_are_unpacked_exactly_or_refused(data: bytes, n: int) -> None:
    out = np.zeros(n + 8, np.uint16)
    out[n:] = 0xBEEF
    try:
        unpack_f16(data, out[:n])
    except ValueError:
        pass
    else:
        assert pack_f16(out[:n]) == data  # one packed form for each array
    assert (out[n:] == 0xBEEF).all()


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 63, 64, 65, 128, 1000])
def test_full_and_empty_arrays(n: int) -> None:
    for array in (np.zeros(n, np.float16), np.ones(n, np.float16), np.full(n, -0.0, np.float16)):
        out = np.empty_like(array)
        unpack_f16(pack_f16(array), out)
        np.testing.assert_array_equal(out.view(np.uint16), array.view(np.uint16))  # minus zero stays


@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 0.9, 1.0])
def test_packed_the_same_whatever_the_processor_has(core: ModuleType, share: float) -> None:
    """Compares the default implementation, the portable one, shuffles of eight values, and the CPU's compression of 32.
    """
    rng = np.random.default_rng(int(100 * share))
    for n in (0, 1, 63, 64, 65, 127, 128, 200, 5000):
        values = np.where(rng.random(n) < share, rng.integers(1, 2**16, n), 0).astype(np.uint16)
        values[: n // 3] *= rng.integers(0, 2, dtype=np.uint16)  # whole words of zeros too
        assert len({core.pack16(values, way=way) for way in range(4)}) == 1
    with pytest.raises(ValueError, match="no such way"):
        core.pack16(values, way=4)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 300), st.sampled_from(["", "bit", "zero", "long"]))
def test_unpacked_the_same_whatever_the_processor_has(seed: int, n: int, wrong: str) -> None:
    rng = np.random.default_rng(seed)
    values = (rng.integers(1, 2**16, n) * (rng.random(n) < rng.random())).astype(np.uint16)
    data = np.frombuffer(pack_f16(values), np.uint8).copy()
    if wrong == "bit" and n:
        data[rng.integers(-(-n // 8))] ^= 1 << int(rng.integers(8))
    elif wrong == "zero":
        data[-2:] = 0
    elif wrong == "long":
        data = np.append(data, np.zeros(2, np.uint8))
    found = []
    for way in range(4):
        out = np.full(n + 40, 0xBEEF, np.uint16)
        fits = _core.unpack16(data, out[:n], way=way)
        assert (out[n:] == 0xBEEF).all()
        found.append((fits, out[:n].tobytes() if fits else b""))
    assert len(set(found)) == 1
    assert wrong or found[0] == (True, values.tobytes())


def test_layout_of_the_packed_form() -> None:
    array = np.array([0, 1.0, 0, -2.0, 0, 0, 0, 0, 0.5], np.float16)
    assert pack_f16(array) == bytes([0b00001010, 0b1]) + np.array([1, -2, 0.5], np.float16).tobytes()


def test_malformed_bytes_are_refused() -> None:
    array = np.array([0, 1, 0, 2, 0, 0, 0, 0, 3], np.uint16)
    packed = pack_f16(array)
    out = np.zeros(9, np.uint16)
    for bad in (b"", packed[:1], packed[:-1], packed + b"\0", bytes([packed[0], 0b11]) + packed[2:] + b"\1\0",
                packed[:2] + b"\0\0" + packed[4:]):
        with pytest.raises(ValueError, match="not a packed array of 9 values"):
            unpack_f16(bad, out)
    with pytest.raises(ValueError, match="not a packed array"):
        unpack_f16(packed, np.zeros(17, np.uint16))


def test_wrong_arrays_are_refused() -> None:
    with pytest.raises(ValueError, match="16-bit"):
        pack_f16(np.zeros(4, np.float32))
    with pytest.raises(ValueError, match="contiguous"):
        pack_f16(np.zeros((4, 4), np.float16)[:, ::2])
    fixed = np.zeros(4, np.float16)
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="writable"):
        unpack_f16(pack_f16(fixed), fixed)


def test_observations_shrink() -> None:
    game = VecGame(duel(), 4, seed=1)
    shared = game.obs["shared"]
    packed = pack_f16(shared)
    assert len(packed) < 0.4 * shared.nbytes
    out = np.empty_like(shared)
    unpack_f16(memoryview(packed), out)
    np.testing.assert_array_equal(out, shared)
