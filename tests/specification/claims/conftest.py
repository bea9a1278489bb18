"""A test that takes a release, and does not say which, runs on each release that changed a rule."""

from tests.specification.scene import RELEASES


def pytest_generate_tests(metafunc):
    said = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
    if "release" in metafunc.fixturenames and not any("release" in names for names in said):
        metafunc.parametrize("release", RELEASES)
