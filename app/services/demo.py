"""The demonstration: a public board of fictional assistants with simulated votes, and a key to look around with."""

from __future__ import annotations

from threading import Event

from app.domain.boards import BoardDraft, Refitting
from app.domain.items import ItemDraft
from app.domain.keys import KeyDraft
from app.services import keys
from app.services.simulate import FEATURES, Simulation, UnitsOfWork, prepare

SLUG = "demo"
SEED = 2026
VOTES = 3000
KEY_NAME = "demo"
BOARD = BoardDraft(
    slug=SLUG,
    title="Demo: fictional assistants",
    public=True,
    outcomes="arena",
    features=FEATURES,
    segments=("language",),
    refit=Refitting(votes=200, seconds=30),
)
ITEMS = {
    "aurora-2": ItemDraft(title="Aurora 2", organisation="Northlab"),
    "basalt-large": ItemDraft(title="Basalt Large", organisation="Tidewater"),
    "cinder": ItemDraft(title="Cinder", organisation="Kiln Research"),
    "drift-mini": ItemDraft(title="Drift Mini", organisation="Tidewater"),
    "ember-pro": ItemDraft(title="Ember Pro", organisation="Kiln Research"),
    "fjord-70b": ItemDraft(title="Fjord 70B", organisation="Northlab"),
    "glint": ItemDraft(title="Glint", organisation="Open Lantern"),
    "harbour": ItemDraft(title="Harbour", organisation="Open Lantern"),
}


def seed(open_work: UnitsOfWork) -> str:
    """Make the board, cast its first votes unless they are there, and return a fresh admin key.

    The keys that earlier demonstrations printed end, so that starting often leaves one.
    """
    board = prepare(open_work, BOARD, ITEMS)
    simulation = Simulation(open_work, board, sorted(ITEMS), seed=SEED)
    for _ in simulation.run(most=VOTES, rate=None, stop=Event()):
        pass
    return _renew_key(open_work)


def _renew_key(open_work: UnitsOfWork) -> str:
    with open_work() as work:
        former = [view.key.id for view in keys.listed(work) if view.key.name == KEY_NAME]
    for key_id in former:
        with open_work() as work:
            keys.revoke(work, key_id)
    with open_work() as work:
        return keys.create(work, KeyDraft(scopes=["admin"], name=KEY_NAME))[1]
