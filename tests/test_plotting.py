"""Pictures: do they show what the chain does?"""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from cases import named, processes
from temporalnmf import plotting
from temporalnmf.chains import BGAR, HierShape, Rate, Shape


def test_paths_are_the_samples_of_the_seed(ax):
    chain = Rate(1.5, 1.3)
    plotting.plot_paths(chain, n_paths=4, n_steps=9, seed=5, ax=ax)
    drawn = np.array([line.get_ydata() for line in ax.lines])
    np.testing.assert_allclose(drawn, np.log10(chain.sample(4, 9, 5)))
    assert "α = 1.5, β = 1.3" in ax.get_title()
    assert "paths collapse" in ax.get_title()


def test_dead_paths_end_in_a_cross(ax):
    chain = HierShape(0.0, 5.0)
    paths = chain.sample(10, 50, 1)
    plotting.plot_paths(chain, seed=1, ax=ax)
    crosses = [line for line in ax.lines if line.get_marker() == "x"]
    first_zero = [int(np.argmax(path == 0.0)) + 1 for path in paths if np.any(path == 0.0)]
    assert len(first_zero) > 2
    assert [int(line.get_xdata()[0]) for line in crosses] == first_zero


@pytest.mark.parametrize("law", processes(), ids=named)
def test_prior_shows_moments_and_quantiles(law, ax):
    plotting.plot_prior(law, n_steps=6, h1=1.5, n_paths=500, ax=ax)
    lines = {line.get_label(): line.get_ydata() for line in ax.lines}
    steps = np.arange(1, 7)
    np.testing.assert_allclose(lines["mean"], law.mean(1.5, steps))
    np.testing.assert_allclose(
        lines["mean ± standard deviation"], law.mean(1.5, steps) + np.sqrt(law.var(1.5, steps))
    )
    np.testing.assert_allclose(lines["median"], np.median(law.sample(500, 6, 0, 1.5), axis=0))
    assert law.regime().title.split("; ")[0] in ax.get_title()
    for band, levels in zip(ax.collections, ((0.05, 0.95), (0.25, 0.75)), strict=True):
        edges = set(band.get_paths()[0].vertices[:, 1].tolist())
        ends = np.quantile(law.sample(500, 6, 0, 1.5)[:, -1], levels)
        assert set(ends.tolist()) <= edges


def test_prior_takes_a_logarithmic_axis_where_needed():
    for chain, scale in ((Rate(1.5), "log"), (BGAR(5.0, 1.0, 0.5), "linear")):
        assert plotting.plot_prior(chain, ax=Figure().subplots()).get_yscale() == scale


@pytest.mark.long
@pytest.mark.parametrize("h1", [1e-20, 1.0, 1e20])
def test_pictures_of_chains_that_run_away_keep_the_start_in_view(h1):
    for chain in (Rate(3.0, 1.0), Rate(1.0, 3.0), Shape(3.0, 1.0), Shape(1.0, 3.0)):
        top = plotting.plot_paths(chain, n_steps=2000, n_paths=3, h1=h1, ax=Figure().subplots())
        low, high = top.get_ylim()
        assert low < np.log10(h1) < high < np.log10(h1) + 20
        prior = plotting.plot_prior(
            chain, n_steps=2000, h1=h1, n_paths=50, log=True, ax=Figure().subplots()
        )
        low, high = prior.get_ylim()
        assert low <= h1 <= high


def test_a_path_of_one_step_is_drawn_as_a_dot(ax):
    plotting.plot_paths(Rate(2.0), n_steps=1, n_paths=3, ax=ax)
    assert {line.get_marker() for line in ax.lines} == {"."}


def test_every_panel_of_the_paper_has_its_own_regime():
    for name, chains in plotting.PAPER_PANELS.items():
        assert {chain.name for chain in chains} == {name}
        if name not in ("bgar", "arg"):
            regimes = [chain.regime() for chain in chains]
            assert len({(r.mean, r.var, r.paths) for r in regimes}) == len(chains)
    assert len(plotting.PAPER_PANELS["rate"]) >= 5
    for name in ("bgar", "arg"):
        assert [c.rho for c in plotting.PAPER_PANELS[name]] == [0.5, 0.9, 0.99]


def test_paper_figures_have_ten_paths_of_fifty_steps_and_bgar_its_mean():
    figure = plotting.paper_figures()["shape"]()
    for ax in figure.axes:
        paths = [line for line in ax.lines if line.get_marker() != "x"]
        assert [len(line.get_xdata()) for line in paths] == [50] * 10
    for ax in [ax for name in ("bgar", "arg") for ax in plotting.paper_figures()[name]().axes]:
        assert any(line.get_linestyle() == "--" and line.get_ydata()[0] == 2.0 for line in ax.lines)


def test_the_map_region_is_shaded_up_to_its_two_edges(ax):
    plotting.plot_map_region(ax)
    edges = {line.get_label(): line.get_xydata() for line in ax.lines}
    np.testing.assert_allclose(edges["αρ = 1"].prod(axis=1), 1.0)
    alpha, rho = edges["α(1 − ρ) = 1"].T
    np.testing.assert_allclose(alpha * (1.0 - rho), 1.0)

    def grey(point):
        return any(path.contains_point(point) for c in ax.collections for path in c.get_paths())

    assert grey((1.0, 0.5))
    assert grey((10.0, 0.97))
    assert not grey((10.0, 0.5))


def test_plots_without_axes_open_a_new_figure():
    mpl.use("Agg")
    from matplotlib import pyplot

    there = pyplot.figure()
    assert plotting.plot_paths(Rate(2.0)).figure is pyplot.gcf() is not there
    pyplot.close("all")


def test_chains_with_several_components_are_refused(ax):
    with pytest.raises(ValueError, match="per component"):
        plotting.plot_prior(Shape([1.0, 2.0]), ax=ax)
