"""A writer's lease without a control plane: held, or lost after a number of checks."""


class FakeLease:
    """Counts its checks; from one on it is lost."""

    def __init__(self, refuses_after: int | None = None) -> None:
        self.asked, self._refuses_after = 0, refuses_after

    def check(self) -> None:
        self.asked += 1
        if self._refuses_after is not None and self.asked > self._refuses_after:
            raise InterruptedError("lease lost")
