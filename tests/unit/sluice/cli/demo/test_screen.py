"""The demo's screen: fits 80 columns, with every figure in its place."""

from io import StringIO

import pytest
from rich.console import Console

from sluice.cli.demo.metrics import Scrape
from sluice.cli.demo.screen import live_table, open_screen, print_summary, progress_line
from sluice.cli.demo.trace import FETCH, PRODUCE, Client, Cycles, Exchange, Trace
from sluice.cli.demo.verdict import Result

EXPOSITION = """\
# TYPE kafka_server_quota_byte_rate gauge
kafka_server_quota_byte_rate{resource="Produce",user="",clientId="bronze"} 1.1e+06
kafka_server_quota_byte_rate{resource="Fetch",user="",clientId="reader"} 5e+05
# TYPE sluice_throttle_seconds_total counter
sluice_throttle_seconds_total{resource="Produce",user="",client_id="bronze"} 12.345
"""
NOW_MS = 20_000.0


def _client(name: str, kind: str, quota: float, *exchanges: Exchange, exceeds_quota: bool = True) -> Client:
    trace = Trace()
    for exchange in exchanges:
        trace.add(exchange)
    return Client(name, "kafka-python", kind, quota, trace, exceeds_quota=exceeds_quota)


def _clients() -> list[Client]:
    return [
        _client(
            "bronze", PRODUCE, 1e6, Exchange(0, 0, 10_000_000, 0), Exchange(NOW_MS - 900, NOW_MS - 500, 100_000, 1100)
        ),
        _client("reader", FETCH, 2e6, Exchange(0, NOW_MS - 3000, 200_000, 1500)),
    ]


def _console(width: int = 80, *, is_terminal: bool = False) -> tuple[Console, StringIO]:
    output = StringIO()
    return Console(file=output, width=width, force_terminal=is_terminal, color_system=None), output


def _row(text: str, name: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.startswith(name)]
    return line.split()


class TestTheLiveTable:
    def _text(self) -> str:
        console, output = _console()
        console.print(live_table(_clients(), Scrape(EXPOSITION), NOW_MS))
        return output.getvalue()

    def test_text_fits_80_columns(self) -> None:
        assert "…" not in self._text()
        assert max(len(line.rstrip()) for line in self._text().splitlines()) <= 80

    def test_live_table_shows_the_last_second_current_delays_and_broker_metrics(self) -> None:
        row = _row(self._text(), "bronze")
        assert row[:8] == ["bronze", "kafka-python", "1.00", "0.10", "1.10", "s", "12.3", "s"]
        assert row[8:] == ["━" * 11 + "─", "110%"]

    def test_finished_throttle_is_not_shown(self) -> None:
        assert _row(self._text(), "reader")[3:8] == ["0.00", "0.00", "s", "0.0", "s"]

    def test_rate_beyond_the_bar_fills_the_bar(self) -> None:
        console, output = _console()
        scrape = Scrape(EXPOSITION.replace("1.1e+06", "9e+06"))
        console.print(live_table(_clients(), scrape, NOW_MS))
        assert _row(output.getvalue(), "bronze")[8:] == ["━" * 12, "900%"]


def test_log_line() -> None:
    line = progress_line(_clients(), Scrape(EXPOSITION), 5.2)
    assert line == "  5 s  bronze 10.1 MB throttled 12.3 s, reader 0.2 MB throttled 0.0 s"


class TestTheScreen:
    def test_without_a_terminal_there_is_one_line_per_5_seconds(self) -> None:
        console, output = _console(width=40)
        with open_screen(console, _clients(), "broker at 127.0.0.1:9", 0.0, 35) as screen:
            for quarter in range(49):  # 12 s
                screen.show(Scrape(EXPOSITION), quarter * 250.0)
        first, *lines = output.getvalue().splitlines()
        assert first == "broker at 127.0.0.1:9"
        assert [line.split(" s ")[0].strip() for line in lines] == ["5", "10"]

    def test_terminal_table_is_erased_at_the_end(self) -> None:
        console, output = _console(is_terminal=True)
        with open_screen(console, _clients(), "broker at 127.0.0.1:9", 0.0, 35) as screen:
            screen.show(Scrape(EXPOSITION), 12_000.0)
            shown = output.getvalue()
        assert "broker at 127.0.0.1:9, 12 of 35 s" in shown
        assert "bronze" in shown
        assert "\x1b[2K" in output.getvalue()[len(shown) :], "the lines are erased"


class TestTheSummary:
    def _text(self, *problems: str) -> str:
        bronze, steady = _client("bronze", PRODUCE, 1e6), _client("steady", PRODUCE, 1e6, exceeds_quota=False)
        console, output = _console()
        results = [
            Result(bronze, 0.999e6, Cycles(2, 13_400.0, 36_200.0, 0.999e6), 1e6, 33.44, list(problems)),
            Result(steady, 0.19e6, None, None, 0.0, []),
        ]
        print_summary(console, results, 1_000.0)
        return output.getvalue()

    def test_text_fits_80_columns(self) -> None:
        assert "…" not in self._text()
        assert max(len(line.rstrip()) for line in self._text().splitlines()) <= 80

    def test_summary_shows_rates_and_cycles_per_client(self) -> None:
        row = _row(self._text(), "bronze ")
        assert row == ["bronze", "1.00", "1.00", "99.9%", "100.0%", "2", "(12-35", "s)", "33.4", "s", "ok"]
        assert _row(self._text(), "steady ") == ["steady", "1.00", "0.19", "19.0%", "0.0", "s", "ok"]

    def test_summary_explains_why_a_single_second_is_inconclusive(self) -> None:
        text = " ".join(self._text().split())
        assert "ten seconds' worth of its quota at once" in text
        assert "average over whole cycles" in text

    def test_summary_ends_with_the_conclusion(self) -> None:
        text = " ".join(self._text().split())
        assert text.endswith(
            "bronze: within 5% of their quotas. steady, which sends less than its quota, was never throttled."
        )

    def test_summary_ends_with_problems_if_any(self) -> None:
        text = self._text("bronze is +7.0% off its quota; 5% is allowed")
        assert text.splitlines()[-1] == "bronze is +7.0% off its quota; 5% is allowed."
        assert " off" in text
        assert "never throttled" not in text


@pytest.mark.parametrize("client_id", ["reader", "nobody"])
def test_missing_broker_metric_is_0(client_id: str) -> None:
    assert Scrape(EXPOSITION).throttle_s("Produce", client_id) == 0.0
    assert Scrape(EXPOSITION).byte_rate("Produce", client_id) == 0.0
