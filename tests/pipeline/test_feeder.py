"""How far the reading of an input is, as it is shown."""

from msgspec.structs import replace

from jobs.common.settings import Settings
from jobs.lakehouse.folder import opened
from jobs.pipeline.feeder import Feeder
from jobs.pipeline.run_progress import RunProgress
from tests.logs.log_makers import coordinator, write


def test_a_run_that_goes_on_with_slices_that_wait_counts_their_lines_and_tells_no_share_before_it_looks(tmp_path):
    write(tmp_path / "logs" / "server.log", [coordinator(second, "Preparing to rebalance group g") for second in range(40)])
    settings = replace(Settings(), slice_lines=10)
    with opened(tmp_path / "lake", settings) as house:
        first = Feeder(tmp_path / "logs", house, settings, follow=False, tell=print)
        assert first.cut(most_lines=15) is None
        second = Feeder(tmp_path / "logs", house, settings, follow=False, tell=print)
    assert second.lines == first.lines > 15
    assert RunProgress("starting", share=first.share_read).text() == "starting  100% of the input", "in blocks"
    assert RunProgress("starting", share=second.share_read).text() == "starting"
