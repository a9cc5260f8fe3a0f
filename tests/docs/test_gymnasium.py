"""The page on gymnasium: its code runs, and prints what stands behind it."""

import pytest
from support.pages import assert_prints_what_it_says


def test_the_code_on_the_page_prints_what_it_says():
    pytest.importorskip("gymnasium.envs.mujoco", reason="gymnasium[mujoco] is not installed")
    names = assert_prints_what_it_says("guides/gymnasium.md", 3)
    for seed in range(3):
        reward, lean = names["episode"](seed)
        assert reward == 200.0  # one for each step that the pendulum stands
        assert lean < 0.01
    names["env"].close()
