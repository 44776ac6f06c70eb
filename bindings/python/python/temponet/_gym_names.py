"""Names of the Gymnasium environments. Gymnasium loads this module when it is imported itself, so it imports little."""

from __future__ import annotations

NAME = "temponet/Schedule-v0"


def register() -> None:
    """Registers the environments. Gymnasium does so for installed packages, and importing `temponet.gym` does."""
    from gymnasium.envs import registration

    if NAME not in registration.registry:
        entry, vector = "temponet.gym:ScheduleEnv", "temponet.gym:ScheduleVectorEnv"
        registration.register(NAME, entry_point=entry, vector_entry_point=vector)
