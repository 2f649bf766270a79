"""Posterior draws with effects: their law, and what follows from a fit."""

import numpy as np
import pytest

import geweke as joint
from temporalnmf.effects import Season
from temporalnmf.effects.design import Design
from temporalnmf.effects.effects import Effects
from temporalnmf.likelihoods import NegativeBinomial
from temporalnmf.sampling.effects import LearnedEffects
from temporalnmf.timeline.clock import Clock
from temporalnmf.timeline.spacing import AS_GIVEN

# Six steps, so that a cycle of three recurs. A step is missing, and entries are.
N = 6
SEEN = np.ones((N, joint.F))
SEEN[2] = SEEN[0, 1] = SEEN[4, 3] = 0.0
SEEN[:, 2] = 0.0


def effects(n_components=joint.K, strengths=("learn", 0.5), n_steps=N):
    """Seasons of three and of two steps, of three columns together."""
    clock = Clock(np.arange(n_steps), AS_GIVEN)
    seasons = [Season(p, strength=s) for p, s in zip((3, 2), strengths, strict=False)]
    design = Design.of([season.resolve(clock) for season in seasons], clock)
    return LearnedEffects(Effects.start(design, n_components))


def simulation(name, likelihood=None, seed=0, seen=SEEN):
    chain = joint.SETTINGS[name]
    known = joint.known_parameters(
        chain, joint.SMOOTHING, joint.K, likelihood=likelihood, effects=effects()
    )
    return joint.Simulation(known, seen, seed)


LAWS = {"poisson": None, "given": NegativeBinomial(1.5), "learned": NegativeBinomial()}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", joint.NAMES)
def test_sweeps_leave_the_joint_law_as_it_is(name, law):
    z = joint.geweke(simulation(name, LAWS[law]), n_chains=400, rounds=5)
    assert abs(z).max() < joint.BOUND, z
