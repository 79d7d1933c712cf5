"""The function that stores plain votes says that it could not, instead of failing: what fails is logged.

Revision ID: 0010
Revises: 0009
"""

from __future__ import annotations

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

HEAD = """
CREATE OR REPLACE FUNCTION store_pairs(
    p_boards bigint[], p_updates timestamptz[], p_keys bigint[], p_resolution interval,
    p_name_boards bigint[], p_names text[], p_name_items bigint[],
    p_board_ids bigint[], p_client_ids uuid[], p_digests bytea[], p_externals text[], p_documents jsonb[],
    p_left_ids bigint[], p_right_ids bigint[], p_outcomes smallint[], p_voters text[], p_voter_types text[],
    p_propensities float8[], p_moments timestamptz[]
) RETURNS timestamptz
LANGUAGE plpgsql
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    stored bigint;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(1, CAST(board AS int)) FROM unnest(p_boards) AS board;
"""

# Nothing is stored where a board, a key or the name of an item is another now; a vote is not where its id or its slot
# is taken, or its context is known otherwise. Then all is undone, contexts too.
# Locks and rows are taken in the order of every other writer.
# A plan is made once for a connection, maybe while tables are empty: then too it has to look rows up by their keys.
# Contexts are looked up one by one, LIMIT keeps them from being joined: such a plan would read all of the board.
STORE = """
    INSERT INTO contexts (board_id, external_id, features, offered)
    SELECT DISTINCT ON (board, external COLLATE "C") board, external, coalesce(sent.features, '{}'), TRUE
    FROM unnest(p_board_ids, p_externals, p_documents) AS sent (board, external, features)
    LEFT JOIN LATERAL (
        SELECT id FROM contexts WHERE board_id = board AND external_id = external LIMIT 1
    ) AS known ON TRUE
    WHERE external IS NOT NULL AND known.id IS NULL
    ORDER BY board, external COLLATE "C", sent.features IS NULL
    ON CONFLICT DO NOTHING;

    WITH standing AS (
        SELECT
        WHERE (SELECT count(*)
               FROM unnest(p_boards, p_updates) AS known (board, updated)
               JOIN boards ON boards.id = known.board AND updated_at = updated AND deleted_at IS NULL
              ) = cardinality(p_boards)
            AND (SELECT count(*) FROM keys AS held
                 WHERE held.id = ANY(p_keys) AND revoked_at IS NULL AND last_used_at >= now() - p_resolution
                ) = cardinality(p_keys)
            AND (SELECT count(*)
                 FROM unnest(p_name_boards, p_names, p_name_items) AS known (board, word, item)
                 JOIN item_names ON item_names.board_id = known.board AND name = word AND item_id = item
                ) = cardinality(p_names)
    )
    INSERT INTO votes (board_id, kind, client_id, digest, context_id, left_id, right_id, outcome, voter, voter_type,
                       propensity, created_at)
    SELECT board, 'pair', client_id, digest, known.id, left_id, right_id, outcome, voter, voter_type, propensity, moment
    FROM standing
    CROSS JOIN unnest(p_board_ids, p_client_ids, p_digests, p_externals, p_documents, p_left_ids, p_right_ids,
                      p_outcomes, p_voters, p_voter_types, p_propensities, p_moments)
        AS sent (board, client_id, digest, external, features, left_id, right_id, outcome, voter, voter_type,
                 propensity, moment)
    LEFT JOIN LATERAL (
        SELECT id, offered, contexts.features FROM contexts WHERE board_id = board AND external_id = external LIMIT 1
    ) AS known ON TRUE
    WHERE external IS NULL OR offered AND (sent.features IS NULL OR sent.features = known.features)
    ORDER BY board, known.id NULLS FIRST, left_id, right_id, voter COLLATE "C" NULLS FIRST, client_id
    ON CONFLICT DO NOTHING;

    GET DIAGNOSTICS stored = ROW_COUNT;
    IF stored < cardinality(p_client_ids) THEN
        RAISE EXCEPTION USING ERRCODE = 'OR001',
            MESSAGE = format('%s of %s votes could be stored', stored, cardinality(p_client_ids));
    END IF;
"""

# What is raised and caught is undone, and nobody hears of it.
QUIETLY = f"""{HEAD}
    BEGIN
{STORE}
    EXCEPTION WHEN SQLSTATE 'OR001' THEN
        RETURN NULL;
    END;
    RETURN now();
END
$$
"""
ALOUD = f"""{HEAD}
{STORE}
    RETURN now();
END
$$
"""


def upgrade() -> None:
    op.execute(QUIETLY)


def downgrade() -> None:
    op.execute(ALOUD)
