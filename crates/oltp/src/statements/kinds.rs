//! Kinds of statements: which of them a replay counts together, and which it leaves out.

use super::lex::{Dialect, Token, Tokens};

/// Kinds that a replay counts together, in the order of its figures.
pub(crate) const COUNTED: [&str; 4] = ["reads", "writes", "control", "others"];

/// A reason to leave a statement out, as people are told it.
pub(crate) type LeftOut = &'static str;

const COPY: LeftOut = "COPY and LOAD DATA: the log holds no rows";
const LARGE_OBJECTS: LeftOut = "large objects";
const SERVER: LeftOut = "administration of the server";
const FILES: LeftOut = "files and programs of the server's host";
const ROLE: LeftOut = "changes of role or of the session's life";
const NOTIFY: LeftOut = "notifications";
const TWO_PHASE: LeftOut = "two-phase commit";
const WRITES: LeftOut = "writes (run them with --writes)";
const LOCKS: LeftOut = "locks and reads that lock (run them with --writes)";
const DDL: LeftOut = "DDL (run it with --writes)";
const MAINTENANCE: LeftOut = "maintenance (run it with --writes)";
const PROCEDURES: LeftOut = "procedures and DO (run them with --writes)";
const ALLOWS_WRITES: LeftOut = "settings that would allow writes (run them with --writes)";
const UNKNOWN: LeftOut = "statements of no known kind (run them with --writes)";

/// A kind of statement: how a replay counts it and whether it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kind {
    /// Its place in [`COUNTED`].
    pub(crate) counted: u8,
    /// Why no replay runs it.
    pub(crate) never: Option<LeftOut>,
    /// Why a replay runs it only where it may write.
    pub(crate) writes: Option<LeftOut>,
    /// Whether a session that only reads begins its transaction in another way.
    pub(crate) begins_writing: bool,
}

impl Kind {
    const fn of(counted: u8) -> Self {
        Self { counted, never: None, writes: None, begins_writing: false }
    }

    const READ: Self = Self::of(0);
    const CONTROL: Self = Self::of(2);
    const OTHER: Self = Self::of(3);

    const fn never(reason: LeftOut) -> Self {
        Self { never: Some(reason), ..Self::OTHER }
    }

    const fn writing(counted: u8, reason: LeftOut) -> Self {
        Self { writes: Some(reason), ..Self::of(counted) }
    }

    /// The kind of several statements that go together: left out for the first reason, and counted as what does most.
    fn joined(self, other: Self) -> Self {
        let order = |kind: Self| [1, 0, 3, 2].iter().position(|place| *place == kind.counted).unwrap_or(3);
        Self {
            counted: if order(self) <= order(other) { self.counted } else { other.counted },
            never: self.never.or(other.never),
            writes: self.writes.or(other.writes),
            begins_writing: self.begins_writing || other.begins_writing,
        }
    }
}

/// The kind of a text of one statement or several.
pub(crate) fn kind_of(text: &str, dialect: Dialect) -> Kind {
    let mut words: Vec<String> = Vec::new();
    let mut found: Option<Kind> = None;
    let mut join = |words: &mut Vec<String>| {
        if !words.is_empty() {
            let kind = one(words, dialect);
            found = Some(found.map_or(kind, |before: Kind| before.joined(kind)));
            words.clear();
        }
    };
    for token in Tokens::new(text, dialect) {
        match token {
            Token::Sign(';') => join(&mut words),
            Token::Word(word) => words.push(word.to_ascii_lowercase()),
            // The name of a function may stand in quotes.
            Token::Quoted(name) => words.push(name[1..].trim_end_matches(['"', '`']).to_ascii_lowercase()),
            // MySQL runs what such a comment holds; nothing here reads it.
            Token::Sign('/') if dialect == Dialect::Mysql => words.push("/".into()),
            Token::Literal | Token::Parameter | Token::Sign(_) => (),
        }
    }
    join(&mut words);
    found.unwrap_or(Kind::OTHER)
}

fn one(words: &[String], dialect: Dialect) -> Kind {
    let has = |word: &str| words.iter().any(|one| one == word);
    let after = |first: &str, second: &str| words.windows(2).any(|pair| pair[0] == first && pair[1] == second);
    if let Some(kind) = calls(words) {
        return kind;
    }
    let second = words.get(1).map_or("", String::as_str);
    match words[0].as_str() {
        "select" | "with" | "values" | "table" | "explain" | "show" | "desc" | "describe" | "fetch" | "declare"
        | "close" | "move" | "handler" | "execute" | "prepare" | "checksum" => {
            if words[0] == "prepare" && second == "transaction" {
                return Kind::never(TWO_PHASE);
            }
            if after("into", "outfile") || after("into", "dumpfile") {
                return Kind::never(FILES);
            }
            let writes = ["insert", "update", "delete", "merge", "replace"].iter().any(|word| has(word));
            let locks = after("for", "update")
                || after("for", "share")
                || after("for", "no")
                || after("for", "key")
                || after("lock", "in");
            match words[0].as_str() {
                _ if locks => Kind::writing(0, LOCKS),
                "with" | "explain" if writes => Kind::writing(1, WRITES),
                "select" if has("into") && dialect == Dialect::Postgresql => Kind::writing(1, WRITES),
                "close" | "declare" | "move" | "prepare" => Kind::OTHER,
                _ => Kind::READ,
            }
        }
        "insert" | "update" | "delete" | "merge" | "replace" => Kind::writing(1, WRITES),
        "begin" | "start" if words[0] == "begin" || second == "transaction" => {
            Kind { begins_writing: has("write"), ..Kind::CONTROL }
        }
        "commit" | "rollback" if second == "prepared" => Kind::never(TWO_PHASE),
        "commit" | "end" | "rollback" | "abort" | "savepoint" | "release" => Kind::CONTROL,
        "set" | "reset" => setting(words, dialect),
        "discard" | "deallocate" | "use" | "connect" => Kind::never(ROLE),
        "copy" | "load" => Kind::never(COPY),
        "listen" | "notify" | "unlisten" => Kind::never(NOTIFY),
        "create" | "alter" | "drop" | "rename" | "comment" | "grant" | "revoke" | "truncate" | "security" => {
            let administers = [
                "database",
                "schema",
                "role",
                "user",
                "system",
                "tablespace",
                "server",
                "subscription",
                "publication",
                "extension",
                "language",
                "resource",
            ]
            .contains(&second);
            if administers { Kind::never(SERVER) } else { Kind::writing(3, DDL) }
        }
        "vacuum" | "analyze" | "analyse" | "reindex" | "cluster" | "optimize" | "refresh" | "check" | "repair"
        | "import" => Kind::writing(3, MAINTENANCE),
        "lock" | "unlock" => Kind::writing(3, LOCKS),
        "call" | "do" => Kind::writing(1, PROCEDURES),
        "kill" | "flush" | "purge" | "change" | "stop" | "start" | "shutdown" | "restart" | "install" | "uninstall"
        | "backup" | "checkpoint" | "clone" | "binlog" | "cache" | "xa" => Kind::never(SERVER),
        _ => Kind::writing(3, UNKNOWN),
    }
}

/// Statements that call what reaches beyond the tables.
fn calls(words: &[String]) -> Option<Kind> {
    words.iter().find_map(|word| match word.as_str() {
        "pg_terminate_backend"
        | "pg_cancel_backend"
        | "pg_reload_conf"
        | "pg_rotate_logfile"
        | "pg_switch_wal"
        | "pg_create_restore_point"
        | "pg_promote"
        | "pg_backup_start"
        | "pg_backup_stop"
        | "pg_start_backup"
        | "pg_stop_backup"
        | "pg_wal_replay_pause"
        | "pg_wal_replay_resume"
        | "pg_drop_replication_slot"
        | "pg_create_logical_replication_slot"
        | "pg_create_physical_replication_slot"
        | "pg_logical_emit_message"
        | "pg_stat_reset"
        | "pg_stat_statements_reset"
        | "pg_import_system_collations" => Some(Kind::never(SERVER)),
        "pg_file_write"
        | "pg_file_rename"
        | "pg_file_unlink"
        | "pg_file_sync"
        | "pg_read_file"
        | "pg_read_binary_file"
        | "load_file"
        | "program"
            if words[0] != "create" =>
        {
            Some(Kind::never(FILES))
        }
        "dblink" | "dblink_exec" | "dblink_connect" | "dblink_send_query" => Some(Kind::never(SERVER)),
        "pg_notify" => Some(Kind::never(NOTIFY)),
        "set_config" => Some(Kind::writing(3, ALLOWS_WRITES)),
        "/" if words[0] == "/" => Some(Kind::writing(3, UNKNOWN)),
        lo if lo.starts_with("lo_") || matches!(lo, "loread" | "lowrite") => Some(Kind::never(LARGE_OBJECTS)),
        _ => None,
    })
}

/// SET and RESET: those of the session's own settings run.
fn setting(words: &[String], dialect: Dialect) -> Kind {
    let has = |name: &str| words.iter().skip(1).any(|word| word == name);
    if has("global") || has("persist") || has("persist_only") || has("password") {
        return Kind::never(SERVER);
    }
    if has("role") || has("authorization") || (words[0] == "reset" && dialect == Dialect::Mysql) {
        return Kind::never(ROLE);
    }
    let allows = |word: &String| word == "write" || word.contains("read_only") || word.contains("readonly");
    if words.iter().any(allows) || (words[0] == "reset" && has("all")) {
        return Kind::writing(3, ALLOWS_WRITES);
    }
    Kind::OTHER
}

#[cfg(test)]
mod tests {
    use super::*;

    fn postgresql(text: &str) -> Kind {
        kind_of(text, Dialect::Postgresql)
    }

    #[test]
    fn reads_run_and_writes_only_where_they_may() {
        for text in
            ["select 1", "WITH a AS (SELECT 1) TABLE a", "show all", "explain select 1", "begin", "set x = 1", "", ";"]
        {
            let kind = postgresql(text);
            assert_eq!((kind.never, kind.writes), (None, None), "{text}");
        }
        for text in [
            "insert into t values (1)",
            "select 1; drop table t",
            "with a as (delete from t returning *) select 1",
            "select * from t for update",
            "explain analyze update t set a = 1",
            "create table t (a int)",
            "vacuum",
            "select a into b from c",
            "call f()",
            "do $$ begin end $$",
            "SELECT set_config('a', 'b', false)",
            "set transaction read write",
            "set default_transaction_read_only = off",
            "reset all",
            "frobnicate",
            "lock t",
            "select \"set_config\"('a', 'b', false)",
        ] {
            let kind = postgresql(text);
            assert!(kind.never.is_none() && kind.writes.is_some(), "{text}");
        }
        for text in [
            "copy t from stdin",
            "select lo_import('x')",
            "drop database x",
            "alter system set a = 1",
            "discard all",
            "select pg_terminate_backend(1)",
            "prepare transaction 'x'",
            "set role x",
            "set session authorization x",
            "select 1; copy t to program 'x'",
            "notify x",
            "select pg_read_file('x')",
        ] {
            assert!(postgresql(text).never.is_some(), "{text}");
        }
        assert!(postgresql("start transaction read write").begins_writing);
    }

    #[test]
    fn what_mysql_alone_runs_is_known() {
        let of = |text| kind_of(text, Dialect::Mysql);
        assert!(of("select 1 into outfile '/x'").never.is_some());
        assert!(of("set global x = 1").never.is_some());
        assert!(of("/*!50000 drop table t */").writes.is_some());
        assert!(of("kill 5").never.is_some());
        assert_eq!(of("set autocommit = 0"), Kind::OTHER);
        assert!(of("set session transaction read write").writes.is_some());
    }

    #[test]
    fn statements_that_go_together_are_counted_as_what_does_most() {
        assert_eq!(postgresql("begin; update t set a = 1; commit").counted, 1);
        assert_eq!(postgresql("begin; select 1").counted, 0);
        assert_eq!(postgresql("commit; begin").counted, 2);
    }
}
