"""The real tier skips nothing: a test that skips has proven nothing, so it is a failure here."""

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        report.outcome, report.longrepr = "failed", f"{item.nodeid} was skipped: {report.longrepr[-1]}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    report = yield
    if report.skipped:
        report.outcome, report.longrepr = "failed", f"{collector.nodeid} was skipped whole: {report.longrepr[-1]}"
    return report
