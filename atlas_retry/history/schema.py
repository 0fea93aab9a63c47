"""The journal's migrations; the list is only ever appended to. Executes nothing."""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """
        CREATE TABLE runs (
            id TEXT PRIMARY KEY,
            root TEXT NOT NULL,
            name TEXT NOT NULL,
            repository TEXT NOT NULL,
            head TEXT,
            state TEXT NOT NULL,
            verdict TEXT,
            reason TEXT,
            with_agent INTEGER NOT NULL,
            started_at TEXT NOT NULL,
            segment_at TEXT NOT NULL,
            spent_ms INTEGER NOT NULL DEFAULT 0,
            last_at TEXT NOT NULL,
            ended_at TEXT,
            duration_ms INTEGER,
            cost_usd REAL NOT NULL DEFAULT 0,
            attempts INTEGER NOT NULL DEFAULT 0,
            start TEXT NOT NULL,
            left_behind TEXT,
            learning TEXT,
            final TEXT,
            asked TEXT NOT NULL,
            mark TEXT NOT NULL,
            pruned INTEGER NOT NULL DEFAULT 0
        ) STRICT
        """,
        "CREATE INDEX runs_by_root ON runs (root, started_at)",
        """
        CREATE TABLE transitions (
            run TEXT NOT NULL REFERENCES runs,
            at TEXT NOT NULL,
            from_state TEXT,
            to_state TEXT NOT NULL,
            reason TEXT NOT NULL
        ) STRICT
        """,
        "CREATE INDEX transitions_by_run ON transitions (run)",
        """
        CREATE TABLE validations (
            run TEXT NOT NULL REFERENCES runs,
            number INTEGER NOT NULL,
            attempt INTEGER,
            at TEXT NOT NULL,
            success INTEGER NOT NULL,
            PRIMARY KEY (run, number)
        ) STRICT, WITHOUT ROWID
        """,
        """
        CREATE TABLE outputs (
            run TEXT NOT NULL REFERENCES runs,
            number INTEGER NOT NULL,
            document TEXT NOT NULL,
            PRIMARY KEY (run, number)
        ) STRICT
        """,
        """
        CREATE TABLE gate_results (
            run TEXT NOT NULL REFERENCES runs,
            validation INTEGER NOT NULL,
            position INTEGER NOT NULL,
            name TEXT NOT NULL,
            kind TEXT NOT NULL,
            status TEXT NOT NULL,
            blocks INTEGER NOT NULL,
            duration_ms INTEGER NOT NULL,
            triage TEXT,
            PRIMARY KEY (run, validation, position)
        ) STRICT, WITHOUT ROWID
        """,
        """
        CREATE TABLE attempts (
            run TEXT NOT NULL REFERENCES runs,
            number INTEGER NOT NULL,
            agent TEXT NOT NULL,
            model TEXT,
            session_id TEXT,
            snapshot TEXT NOT NULL,
            started_at TEXT NOT NULL,
            told_usd REAL,
            reply TEXT,
            ended_at TEXT,
            passed INTEGER,
            cost_usd REAL,
            duration_ms INTEGER,
            validation INTEGER,
            document TEXT,
            PRIMARY KEY (run, number)
        ) STRICT
        """,
        """
        CREATE TABLE rules (
            run TEXT NOT NULL REFERENCES runs,
            attempt INTEGER NOT NULL,
            rule TEXT NOT NULL,
            fixed INTEGER NOT NULL,
            remaining INTEGER NOT NULL,
            introduced INTEGER NOT NULL,
            PRIMARY KEY (run, attempt, rule)
        ) STRICT, WITHOUT ROWID
        """,
        """
        CREATE TABLE violations (
            run TEXT NOT NULL REFERENCES runs,
            attempt INTEGER,
            rule TEXT NOT NULL,
            path TEXT NOT NULL,
            line INTEGER,
            detail TEXT NOT NULL
        ) STRICT
        """,
        """
        CREATE TABLE learnings (
            id TEXT PRIMARY KEY,
            repository TEXT NOT NULL,
            made_at TEXT NOT NULL,
            document TEXT,
            note TEXT
        ) STRICT
        """,
        """
        CREATE TABLE learning_keys (
            key TEXT NOT NULL,
            learning TEXT NOT NULL REFERENCES learnings,
            PRIMARY KEY (key, learning)
        ) STRICT, WITHOUT ROWID
        """,
    ),
    # cost of the interrupted turns of an attempt
    ("ALTER TABLE attempts ADD COLUMN lost_usd REAL NOT NULL DEFAULT 0",),
    # whether the edits of an interrupted attempt were reverted
    ("ALTER TABLE attempts ADD COLUMN restored INTEGER NOT NULL DEFAULT 0",),
    # violations are in the document of the attempt
    ("DROP TABLE violations",),
    # reviews that `atlas validate --review` paid for
    (
        """
        CREATE TABLE paid_reviews (
            repository TEXT NOT NULL,
            at TEXT NOT NULL,
            cost_usd REAL NOT NULL
        ) STRICT
        """,
    ),
)
"""Each runs once, in one transaction; `PRAGMA user_version` counts them."""
