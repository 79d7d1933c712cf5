from tests.api.conftest import *
from tests.api.test_degenerate import *


def test_x(make_board, bench):
    board = make_board(items=ITEMS)
    board.batch(*ballots(ITEMS, 20, seed=11, contexts=10, voters=5))
    a = board("POST", "/exclusions", {"filter": {"voter_type": "human"}, "reason": "bot"})
    print(a.status_code, a.text)
    with bench.work() as w:
        b = w.boards.find(board.slug)
        print(w.gather.excluded(b.id, 10**9))
        from sqlalchemy import text

        print(w.session.execute(text("select id,board_id,filter,lifted_at,reason from exclusions")).all())
        print(w.session.execute(text("select distinct voter_type from votes")).all())
    assert 0
