"""Lines of the demo: the running count stays at the bottom of a terminal and is a line like others in a pipe."""

import io

from simulators.demo.screen import Screen


class _Terminal(io.StringIO):
    """Both streams of a program that somebody watches."""

    def isatty(self) -> bool:
        return True

    def shown(self) -> list[str]:
        """What is left on the screen after carriage returns and erased lines."""
        lines = [""]
        for part in self.getvalue().replace("\r\x1b[K", "\r").replace("\n", "\n\0").split("\0"):
            lines[-1] += part
            if part.endswith("\n"):
                lines.append("")
        return [line.rstrip("\n").rpartition("\r")[2] for line in lines]


def test_on_a_terminal_the_count_stays_below_what_happens() -> None:
    terminal = _Terminal()
    screen = Screen(terminal, terminal)
    screen.say("The vans set out.")
    screen.count("1 of 2")
    screen.tell("enter")
    screen.count("2 of 4")
    screen.tell("leave")
    assert terminal.shown() == ["The vans set out.", "enter", "leave", "2 of 4"]
    screen.end_count()
    screen.say("Done.")
    assert terminal.shown() == ["The vans set out.", "enter", "leave", "2 of 4", "Done.", ""]


def test_in_a_pipe_results_and_progress_are_plain_lines_of_two_streams() -> None:
    out, err = io.StringIO(), io.StringIO()
    screen = Screen(out, err)
    screen.count("1 of 2")
    screen.tell("enter")
    screen.count("2 of 4")
    screen.end_count()
    assert out.getvalue() == "enter\n"
    assert err.getvalue() == "1 of 2\n2 of 4\n"


def test_with_json_nothing_but_the_figures_goes_to_stdout() -> None:
    out, err = io.StringIO(), io.StringIO()
    screen = Screen(out, err, as_json=True)
    screen.tell("enter")
    assert (out.getvalue(), err.getvalue()) == ("", "enter\n")
