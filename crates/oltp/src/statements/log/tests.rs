use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{
    entry::{Account, Logged, News, Takes, Way},
    open,
};

/// What a log says, in its order.
#[derive(Default)]
struct Kept {
    begins: Vec<(u64, i64, String)>,
    statements: Vec<(u64, Logged)>,
    account: Account,
}

impl Takes for Kept {
    fn take(&mut self, session: u64, news: News) {
        match news {
            News::Begins { at_ns, database } => self.begins.push((session, at_ns, database)),
            News::Statement(logged) => self.statements.push((session, logged)),
        }
    }

    fn left_out(&mut self, reason: &'static str, count: u64) {
        self.account.left_out(reason, count);
    }

    fn not_understood(&mut self, line: &[u8]) {
        self.account.not_understood(line);
    }
}

fn read(text: &[u8], prefix: Option<&str>) -> Result<(&'static str, Kept), String> {
    let mut opened = open(text, text, prefix)?;
    let mut kept = Kept::default();
    while opened.reader.read_some(100, &mut kept).map_err(|error| error.to_string())? {}
    Ok((opened.format, kept))
}

/// Texts with their response times in microseconds and codes.
fn told(kept: &Kept) -> Vec<(&str, Option<u64>, Option<&str>)> {
    kept.statements
        .iter()
        .map(|(_, one)| (one.text.as_str(), one.duration_ns.map(|ns| ns / 1000), one.code.as_deref()))
        .collect()
}

const CSV: &str = "\
2026-11-27 10:00:00.000 UTC,\"u\",\"shop\",7,\"[local]\",6748.7,1,\"authentication\",2026-11-27 09:59:59 UTC,3/1,0,LOG,00000,\
\"connection authorized: user=u\",,,,,,,,,\"\",\"client backend\",,0
2026-11-27 10:00:00.101 UTC,\"u\",\"shop\",7,\"[local]\",6748.7,2,\"BEGIN\",2026-11-27 09:59:59 UTC,3/2,0,LOG,00000,\
\"duration: 1.500 ms  statement: BEGIN\",,,,,,,,,\"app\",\"client backend\",,0
2026-11-27 10:00:00.102 UTC,\"u\",\"shop\",7,\"[local]\",6748.7,3,\"PARSE\",2026-11-27 09:59:59 UTC,3/2,0,LOG,00000,\
\"duration: 0.100 ms  parse P_0: SELECT \"\"a\"\"\n FROM t WHERE k = $1\",,,,,,,,,\"app\",\"client backend\",,0
2026-11-27 10:00:00.103 UTC,\"u\",\"shop\",7,\"[local]\",6748.7,4,\"BIND\",2026-11-27 09:59:59 UTC,3/2,0,LOG,00000,\
\"duration: 0.200 ms  bind P_0: SELECT 1\",\"parameters: $1 = '5'\",,,,,,,,\"app\",\"client backend\",,0
2026-11-27 10:00:00.104 UTC,\"u\",\"shop\",7,\"[local]\",6748.7,5,\"SELECT\",2026-11-27 09:59:59 UTC,3/2,0,LOG,00000,\
\"duration: 0.700 ms  execute P_0: SELECT \"\"a\"\"\n FROM t WHERE k = $1\",\"parameters: $1 = '5'\",,,,,,,,\"app\",\"client backend\",,0
2026-11-27 10:00:00.200 UTC,\"u\",\"shop\",7,\"[local]\",6748.7,6,\"INSERT\",2026-11-27 09:59:59 UTC,3/2,9,ERROR,23505,\
\"duplicate key\",\"Key (k)=(5) already exists.\",,,,,\"INSERT INTO t VALUES (5)\",,,\"app\",\"client backend\",,0
2026-11-27 10:00:00.300 UTC,\"u\",\"shop\",7,\"[local]\",6748.7,7,\"idle\",2026-11-27 09:59:59 UTC,3/0,0,LOG,00000,\
\"disconnection: session time: 0:00:01\",,,,,,,,,\"app\",\"client backend\",,0
2026-11-27 10:00:00.400 UTC,,,9,,6748.9,1,,2026-11-27 09:00:00 UTC,,0,LOG,00000,\"checkpoint starting: time\",,,,,,,,,\"\",\"checkpointer\",,0
";

#[test]
fn a_csvlog_has_sessions_statements_and_errors() {
    let (format, kept) = read(CSV.as_bytes(), None).unwrap();
    assert_eq!(format, "csvlog");
    assert_eq!(
        told(&kept),
        [
            ("BEGIN", Some(1500), None),
            ("SELECT \"a\"\n FROM t WHERE k = $1", Some(1000), None),
            ("INSERT INTO t VALUES (5)", None, Some("23505")),
        ]
    );
    let (_, select) = &kept.statements[1];
    assert_eq!((select.way, &select.parameters), (Way::Prepared, &vec![Some("5".to_owned())]));
    // Begins when parsing did: at the time of the log less all three.
    let at_ns = 1_795_773_600_104_000_000;
    assert_eq!(select.start_ns, at_ns - 1_000_000);
    assert_eq!(kept.begins.len(), 1);
    assert_eq!((kept.begins[0].1, kept.begins[0].2.as_str()), (1_795_773_599_000_000_000, "shop"));
    assert_eq!(
        kept.account.left_out,
        BTreeMap::from([("messages of the server's own processes", 1), ("messages that are no statements", 1),])
    );
    assert_eq!(kept.account.not_understood, 0);
}

#[test]
fn columns_of_older_servers_are_as_many_fewer() {
    let line = "2026-11-27 10:00:00.1 UTC,\"u\",\"d\",7,\"\",s.1,2,\"SELECT\",2026-11-27 09:00:00 UTC,3/2,0,LOG,00000,\
                \"duration: 1.0 ms  statement: SELECT 1\",,,,,,,,,\"app\"\n";
    assert_eq!(told(&read(line.as_bytes(), None).unwrap().1), [("SELECT 1", Some(1000), None)]);
}

#[test]
fn statements_logged_before_their_durations_are_joined_with_them() {
    let line = |number: u32, severity: &str, text: &str, detail: &str| {
        format!(
            "2026-11-27 10:00:00.{number:03} UTC [7] u@shop {severity}:  {text}\n{}",
            if detail.is_empty() {
                String::new()
            } else {
                format!("2026-11-27 10:00:00.{number:03} UTC [7] u@shop DETAIL:  {detail}\n")
            }
        )
    };
    let text = [
        line(1, "LOG", "statement: SELECT 1\n\t, 2", ""),
        line(3, "LOG", "duration: 2.000 ms", ""),
        line(4, "LOG", "execute <unnamed>: SELECT $1", "parameters: $1 = NULL"),
        line(5, "LOG", "duration: 0.500 ms", ""),
        line(6, "LOG", "statement: SELECT 1/0", ""),
        line(7, "ERROR", "division by zero", ""),
        "2026-11-27 10:00:00.007 UTC [7] u@shop STATEMENT:  SELECT 1/0\n".to_owned(),
        line(8, "LOG", "duration: 9.0 ms  execute fetch from <unnamed>/C_1: SELECT 1", ""),
        line(9, "LOG", "statement: COMMIT", ""),
    ]
    .concat();
    let (format, kept) = read(text.as_bytes(), None).unwrap();
    assert_eq!(format, "stderr");
    assert_eq!(
        told(&kept),
        [
            ("SELECT 1\n, 2", Some(2000), None),
            ("SELECT $1", Some(500), None),
            ("SELECT 1/0", None, Some("?")),
            ("COMMIT", None, None),
        ]
    );
    assert_eq!(kept.statements[1].1.way, Way::Extended);
    assert_eq!(kept.begins[0].2, "shop");
}

#[test]
fn a_jsonlog_says_the_same() {
    let text = concat!(
        r#"{"timestamp":"2026-11-27 10:00:00.104 UTC","user":"u","dbname":"shop","pid":7,"session_id":"6748.7","line_num":5,"#,
        r#""ps":"SELECT","session_start":"2026-11-27 09:59:59 UTC","error_severity":"LOG","#,
        r#""message":"duration: 0.700 ms  execute P_0: SELECT \"a\" FROM t WHERE k = $1","detail":"parameters: $1 = 'it''s'","#,
        r#""backend_type":"client backend","query_id":0}"#,
        "\nnot json\n",
        r#"{"timestamp":"2026-11-27 10:00:00.204 UTC","dbname":"shop","session_id":"6748.7","error_severity":"ERROR","#,
        r#""state_code":"42P01","message":"relation does not exist","statement":"SELECT * FROM nowhere","backend_type":"client backend"}"#,
        "\n"
    );
    let (format, kept) = read(text.as_bytes(), None).unwrap();
    assert_eq!(format, "jsonlog");
    assert_eq!(
        told(&kept),
        [("SELECT \"a\" FROM t WHERE k = $1", Some(700), None), ("SELECT * FROM nowhere", None, Some("42P01")),]
    );
    assert_eq!(kept.statements[0].1.parameters, [Some("it's".to_owned())]);
    assert_eq!(kept.account.not_understood, 1);
}

#[test]
fn a_statement_whose_parameters_are_missing_is_left_out() {
    let text = "2026-11-27 10:00:00.1 UTC [7] LOG:  duration: 0.5 ms  execute <unnamed>: SELECT $1\n";
    let kept = read(text.as_bytes(), None).unwrap().1;
    assert!(kept.statements.is_empty());
    assert_eq!(kept.account.left_out.values().sum::<u64>(), 1);
}

const GENERAL: &str = "\
/usr/sbin/mariadbd, Version: 10.11.6-MariaDB-log (Debian 12). started with:
Tcp port: 3306  Unix socket: /run/mysqld/mysqld.sock
Time\t\t    Id Command\tArgument
261127 10:00:00\t     8 Connect\tu@localhost on shop using Socket
\t\t     8 Query\tSELECT 1,
  2 -- Query
261127 10:00:01\t     8 Prepare\tSELECT ?
\t\t     8 Execute\tSELECT 5
\t\t     8 Quit\t
";

#[test]
fn a_general_log_has_texts_that_go_on_in_further_lines() {
    let (format, kept) = read(GENERAL.as_bytes(), None).unwrap();
    assert_eq!(format, "general log");
    assert_eq!(told(&kept), [("SELECT 1,\n  2 -- Query", None, None), ("SELECT 5", None, None)]);
    assert_eq!(kept.begins, [(kept.statements[0].0, 1_795_773_600_000_000_000, "shop".to_owned())]);
    let mysql = "2026-11-27T10:00:00.123456Z\t    9 Connect\tu@localhost on  using Socket\n\
                 2026-11-27T10:00:00.223456Z\t    9 Init DB\tshop\n2026-11-27T10:00:00.323456Z\t    9 Query\tSELECT 1\n";
    let kept = read(mysql.as_bytes(), None).unwrap().1;
    assert_eq!(kept.statements[0].1.start_ns, 1_795_773_600_323_456_000);
    assert_eq!(kept.begins.last().unwrap().2, "shop");
    // Tabs may have become spaces on the way.
    let spaced = "261127 10:00:00      51 Query       SELECT 1\n                FROM t\n                     \
                  52 Query       SELECT 2\n";
    assert_eq!(
        told(&read(spaced.as_bytes(), None).unwrap().1),
        [("SELECT 1\n                FROM t", None, None), ("SELECT 2", None, None)]
    );
}

const SLOW: &str = "\
/usr/sbin/mariadbd, Version: 10.11.6-MariaDB-log (Debian 12). started with:
Tcp port: 3306  Unix socket: /run/mysqld/mysqld.sock
Time\t\t    Id Command\tArgument
# Time: 261127 12:00:03
# User@Host: u[u] @ localhost []
# Thread_id: 8  Schema: shop  QC_hit: No
# Query_time: 0.002000  Lock_time: 0.000010  Rows_sent: 1  Rows_examined: 0
# Rows_affected: 0  Bytes_sent: 62
use shop;
SET timestamp=1795773603;
SELECT 1
# not a header
FROM t;
# User@Host: u[u] @ localhost []
# Thread_id: 8  Schema: shop  QC_hit: No
# Query_time: 0.000100  Lock_time: 0.000010  Rows_sent: 1  Rows_examined: 0
SET timestamp=1795773604;
# administrator command: Quit;
";

#[test]
fn a_slow_log_gives_the_beginning_on_its_own_clock() {
    let (format, kept) = read(SLOW.as_bytes(), None).unwrap();
    assert_eq!(format, "slow log");
    assert_eq!(told(&kept), [("SELECT 1\n# not a header\nFROM t", Some(2000), None)]);
    // The log's clock is two hours ahead of UTC.
    assert_eq!(kept.statements[0].1.start_ns, 1_795_780_803_000_000_000);
    let mysql = "# Time: 2026-11-27T10:00:00.500000Z\n# User@Host: root[root] @ localhost []  Id:     8\n\
                 # Query_time: 0.250000  Lock_time: 0.0 Rows_sent: 1  Rows_examined: 0 Thread_id: 8 Errno: 1146\n\
                 SET timestamp=1795773600;\nselect * from x;\n";
    let kept = read(mysql.as_bytes(), None).unwrap().1;
    assert_eq!(told(&kept), [("select * from x", Some(250_000), Some("?"))]);
    assert_eq!(kept.statements[0].1.start_ns, 1_795_773_600_250_000_000);
}

#[test]
fn what_is_no_log_is_refused_with_a_reason() {
    let refused = |text: &[u8]| read(text, None).err().unwrap();
    assert!(refused(b"hello\nworld\n").contains("no log of statements"));
    assert!(refused(b"\x1f\x8b\x08").contains("compressed"));
    assert!(refused(b"10:00 7> LOG:  statement: SELECT 1\n").contains("--prefix"));
    assert!(read(b"x", Some("%p")).err().unwrap().contains("%m"));
    assert!(read(b"x", Some("%m [%p] ")).err().unwrap().contains("no line"));
}

fn samples() -> Vec<Vec<u8>> {
    let stderr = "2026-11-27 10:00:00.1 UTC [7] u@d LOG:  duration: 1 ms  execute P: SELECT $1\n\
                  2026-11-27 10:00:00.1 UTC [7] u@d DETAIL:  parameters: $1 = 'a'\n";
    let json = "{\"timestamp\":\"2026-11-27 10:00:00.1 UTC\",\"session_id\":\"1.2\",\"error_severity\":\"LOG\",\
                \"message\":\"duration: 1 ms  statement: SELECT 1\"}\n";
    [CSV, stderr, json, GENERAL, SLOW].map(|text| text.repeat(3).into_bytes()).into()
}

proptest! {
    #[test]
    fn whatever_the_bytes_a_log_is_read_to_its_end(
        sample in 0_usize..5,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0_u8..4), 1..40),
    ) {
        let mut text = samples().swap_remove(sample);
        for (place, byte, how) in changes {
            if text.is_empty() {
                break;
            }
            let at = place.index(text.len());
            match how {
                0 => text[at] = byte,
                1 => drop(text.remove(at)),
                2 => text.insert(at, byte),
                _ => text.truncate(at + 1),
            }
        }
        if let Ok((_, kept)) = read(&text, None) {
            for (_, one) in &kept.statements {
                prop_assert!(one.parameters.len() <= 65_535);
                let kind = crate::statements::kinds::kind_of(&one.text, crate::statements::lex::Dialect::Mysql);
                prop_assert!(usize::from(kind.counted) < crate::statements::kinds::COUNTED.len());
                crate::statements::fingerprint::fingerprint(&one.text, crate::statements::lex::Dialect::Postgresql);
            }
        }
    }
}
