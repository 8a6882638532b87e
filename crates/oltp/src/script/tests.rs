//! The cases of pgbench's own tests (src/bin/pgbench/t, 001 and 002): values, and what is refused.

use proptest::prelude::*;

use super::{
    machine::Machine,
    names::Names,
    numbers::Stream,
    read::{Action, Command, Part, Time, read},
    ready::{check, statements},
    value::Value,
};

const DEFINES: [(&str, &str); 7] =
    [("foo", "-10.1"), ("bla", "false"), ("i", "+3"), ("n", "null"), ("t", "t"), ("f", "of"), ("d", "1.0")];

/// Runs what a script does without a server; gives what `debug()` showed, and how it ended.
fn pass(text: &str, defines: &[(&str, &str)]) -> (Vec<(usize, String)>, Result<(), String>) {
    let mut names = Names::default();
    let preset = ["scale", "client_id", "random_seed", "default_seed"].map(|name| names.slot(name).unwrap());
    let defined: Vec<_> = defines.iter().map(|(name, value)| (names.slot(name).unwrap(), *value)).collect();
    let commands = read("test", text, &mut names).unwrap();
    let mut seeds = Stream::new(5432);
    let mut machine = Machine::new(names.len(), seeds.next());
    let presets = [1, 0, 5432, seeds.next() as i64];
    preset.into_iter().zip(presets).for_each(|(slot, value)| machine.set(slot, Value::Int(value)));
    defined.into_iter().for_each(|(slot, value)| machine.set_text(slot, value.as_bytes()));
    let names = names.by_slot();
    let (mut shown, mut next) = (Vec::new(), 0);
    while let Some(Command { number, action, .. }) = commands.get(next) {
        next += 1;
        let mut evaluate =
            |expression: &_| machine.evaluate(expression, &names, |value| shown.push((*number, value.shown())));
        match action {
            Action::Jump(place) => next = *place,
            Action::Unless(expression, otherwise) => match evaluate(expression) {
                Ok(value) if value.is_true() => (),
                Ok(_) => next = *otherwise,
                Err(text) => return (shown, Err(text)),
            },
            Action::Set(slot, expression) => match evaluate(expression) {
                Ok(value) => machine.set(*slot, value),
                Err(text) => return (shown, Err(text)),
            },
            _ => (),
        }
    }
    (shown, Ok(()))
}

/// What `debug()` shows of one expression.
fn shown(expression: &str) -> String {
    let (shown, ended) = pass(&format!("\\set x debug({expression})\n"), &DEFINES);
    ended.unwrap();
    shown[0].1.clone()
}

#[test]
fn expressions_have_the_values_of_pgbench() {
    for (expression, value) in [
        ("abs(-4)", "int 4"),
        ("greatest(5, 4, 3, 2)", "int 5"),
        ("11 + least(-5, -4, -3, -2)", "int 6"),
        ("int(7.3)", "int 7"),
        ("17 / (4|1) + ( 4 + (7 >> 2))", "int 8"),
        ("- (3 * 4 - (-(~ 1) + -(~ 0))) / -1 + 3 % -1", "int 9"),
        ("10 + (0 + 0 * 0 - 0 / 1)", "int 10"),
        ("64 % (((2 + 1 * 2 + (1 # 2) | 4 * (2 & 11)) - (1 << 2)) + 2)", "int 12"),
        ("sqrt(+1.5 * 2.0) * abs(-0.8E1)", "double 13.856406460551"),
        ("double(1 + 1) * (-75.0 / :foo)", "double 14.8514851485149"),
        ("pi() * 4.9", "double 15.3938040025900"),
        ("greatest(4, 2, -1.17) * 4.0 * Ln(Exp(1.0))", "double 16"),
        ("least(-5.18, .0E0, 1.0/0) * -3.3", "double 17.094"),
        ("pow(-3,3)", "double -27"),
        ("pow(2.0,10)", "double 1024"),
        ("pow(0,0)", "double 1"),
        ("pow(0.0,0.0)", "double 1"),
        ("pow(-2,-3)", "double -0.125"),
        ("power(-5.0,-5.0)", "double -0.00032"),
        ("pow(9223372036854775807, 2)", "double 8.50705917302346e+37"),
        ("pow(10,30)", "double 1e+30"),
        ("1.0 = 0.0 and 1.0 != 0.0", "boolean false"),
        ("0 = 1 Or 1.0 = 1", "boolean true"),
        ("case when 0 < 1 then 32 else 0 end", "int 32"),
        ("case when true then 33 else 0 end", "int 33"),
        ("case when false THEN -1 when 1 = 1 then 13 + 19 + 2.0 end ", "double 34"),
        (
            "case when (1 > 0) and (1 >= 0) and (0 < 1) and (0 <= 1) and (0 != 1) and (0 = 0) and (0 <> 1) then 35 else 0 end",
            "int 35",
        ),
        ("CASE \\\n  WHEN (1.0 > 0.0) AND (0.0 <> 1.0) \\\n  THEN 36 \\\n  ELSE 0 \\\n  END", "int 36"),
        ("CASE WHEN NOT FALSE THEN 3 * 12.3333334 END", "double 37.0000002"),
        ("case when false then 0 when 1-1 <> 0 then 1 else 38 end", "int 38"),
        ("10 + mod(13 * 7 + 12, 13) - mod(-19 * 11 - 17, 19)", "int 39"),
        (
            "NOT (0 > 1) AND (1 <= 1) AND NOT (0 >= 1) AND (0 < 1) AND NOT (false and true) AND (false OR TRUE) AND \
             (NOT :f) AND (NOT FALSE) AND NOT (NOT TRUE)",
            "boolean true",
        ),
        ("NULL + NULL * exp(NULL)", "null"),
        ("NOT (:n IS NOT NULL OR :d IS NULL)", "boolean true"),
        ("NULL IS NULL AND :d IS NOT NULL AND :d NOTNULL", "boolean true"),
        (":n ISNULL AND NOT :n IS TRUE AND :n IS NOT FALSE", "boolean true"),
        ("CASE WHEN :n IS NULL THEN 46 ELSE NULL END", "int 46"),
        (":n IS NULL AND NOT :f AND :t", "boolean true"),
        (
            "CASE WHEN 1 THEN TRUE END AND CASE WHEN 1.0 THEN TRUE END AND CASE WHEN :n THEN NULL ELSE TRUE END",
            "boolean true",
        ),
        ("hash(10, 5432)", "int -5817877081768721676"),
        ("hash_murmur2(10, 5432) = hash(10, 5432)", "boolean true"),
        ("hash_fnv1a(10, 5432)", "int -7793829335365542153"),
        ("hash(10) = hash(10, :default_seed)", "boolean true"),
        ("case when 0 = 0 or (1 / 0) < 0 then -1 else (1 / 0) end", "int -1"),
        ("case when 0 > 0 and (1 / 0) < 0 then (1 / 0) else 1 end", "int 1"),
        ("-9223372036854775808", "int -9223372036854775808"),
        ("-(-9223372036854775808 + 1)", "int 9223372036854775807"),
        ("permute(0, 2) + permute(1, 2) = 1", "boolean true"),
        ("permute(0, 3) + permute(1, 3) + permute(2, 3) = 3", "boolean true"),
        (":scale + :client_id + :random_seed", "int 5433"),
        // Operators of one level go from the left; a comparison turns its sides only in the order of their evaluation.
        ("1 - 2 - 3", "int -4"),
        ("2 + 3 * 4 | 1", "int 15"),
        ("~ 1 + 2", "int -4"),
        ("3 > 2 IS NULL", "boolean false"),
        ("not not true", "boolean true"),
        ("1 = 1 IS NOT NULL IS TRUE", "boolean true"),
    ] {
        let wanted = value.trim_end_matches('0');
        assert!(shown(expression).trim_end_matches('0') == wanted, "{expression}: {}", shown(expression));
    }
}

#[test]
fn a_seed_gives_the_numbers_of_pgbench() {
    let text = "\\set i1 debug(random(10, 19))\n\\set i2 debug(random_exponential(100, 199, 10.0))\n\
                \\set i3 debug(random_gaussian(1000, 1999, 10.0))\n\\set id debug(random_zipfian(1, 9, 1.3))\n";
    let (shown, _) = pass(text, &[]);
    let values: Vec<_> = shown.iter().map(|(_, value)| value.as_str()).collect();
    assert_eq!(values, ["int 17", "int 104", "int 1498", "int 3"]);
}

#[test]
fn branches_are_taken_as_their_conditions_say() {
    let branch = |first, second| {
        let text = format!(
            "\\if {first}\n\\set x debug(1)\n\\if 0\n\\set x debug(9)\n\\elif 1\n\\set x debug(2)\n\\endif\n\\elif \
             {second}\n\\set x debug(3)\n\\else\n\\set x debug(4)\n\\endif\n\\set x debug(5)\n"
        );
        let (shown, ended) = pass(&text, &[]);
        ended.unwrap();
        shown
    };
    let of = |numbers: &[(usize, i64)]| {
        numbers.iter().map(|(number, value)| (*number, format!("int {value}"))).collect::<Vec<_>>()
    };
    assert_eq!(branch("1 > 0", "1"), of(&[(2, 1), (6, 2), (13, 5)]));
    assert_eq!(branch("0", "2.5"), of(&[(9, 3), (13, 5)]));
    assert_eq!(branch("null", "0"), of(&[(11, 4), (13, 5)]));
}

#[test]
fn what_an_expression_cannot_do_is_told() {
    let defines = [
        ("foo", "bla"),
        ("null", "null"),
        ("true", "true"),
        ("badtrue", "trueXXX"),
        ("maxint", "9223372036854775807"),
        ("minint", "-9223372036854775808"),
    ];
    for (expression, told) in [
        ("1/0", "division by zero"),
        (":nosuchvariable", "undefined variable \"nosuchvariable\""),
        ("random(5,3)", "empty range given to random"),
        ("random(:minint, :maxint)", "random range is too large"),
        ("random_gaussian(0, 10, 1.0)", "gaussian parameter must be at least 2"),
        ("random_exponential(0, 10, 0.0)", "exponential parameter must be greater than zero"),
        ("random_zipfian(0, 10, 1)", "zipfian parameter must be in range [1.001, 1000]"),
        ("random_zipfian(0, 10, 1000000)", "zipfian parameter must be in range [1.001, 1000]"),
        (":foo + 1", "malformed variable \"foo\" value: \"bla\""),
        ("NOT 0.0", "cannot coerce double to boolean"),
        ("TRUE + 2", "cannot coerce boolean to int"),
        ("ln(TRUE)", "cannot coerce boolean to double"),
        ("random(FALSE, TRUE)", "cannot coerce boolean to int"),
        ("int(1E32)", "double to int overflow for 100"),
        ("(1<<62) + (1<<62)", "bigint add out of range"),
        ("0 - (1<<62) - (1<<62) - (1<<62)", "bigint sub out of range"),
        ("2 * (1<<62)", "bigint mul out of range"),
        (":minint / -1", "bigint div out of range"),
        (":badtrue or true", "malformed variable \"badtrue\" value: \"trueXXX\""),
        ("permute(0, 0)", "permute size parameter must be greater than zero"),
    ] {
        let (_, ended) = pass(&format!("\\set i {expression}"), &defines);
        let text = ended.expect_err(expression);
        assert!(text.starts_with(told), "{expression}: {text}");
    }
}

#[test]
fn what_is_wrong_with_a_script_is_told_with_its_line() {
    let deep = format!("\\set i {}1{}", "(".repeat(300), ")".repeat(300));
    let nested = "\\if 1\n".repeat(101);
    let many = format!("SELECT LEAST({})", vec![":i"; 256].join(", "));
    let arguments = format!("\\set i least({})", vec!["1"; 17].join(","));
    for (text, told) in [
        ("\\set i 1 +", "test:1: syntax error in command \"set\", at column 11: \\set i 1 +"),
        ("\\set i noSuchFunction()", "unexpected function name (noSuchFunction)"),
        ("\\set . 1", "invalid variable name (.)"),
        ("\\set i ;", "unexpected character (;)"),
        ("\\set i", "syntax error"),
        ("\\set", "missing argument"),
        ("\\set i CASE TRUE THEN 1 ELSE 0 END", "syntax error in command \"set\""),
        ("\\set d ln(1.0, 2.0))", "unexpected number of arguments (ln)"),
        ("\\set i greatest())", "at least one argument expected (greatest)"),
        ("\\set i least()", "at least one argument expected (least)"),
        ("\\set i hash()", "unexpected number of arguments (hash)"),
        ("\\set i hash(1,2,3)", "unexpected number of arguments (hash)"),
        ("\\set i permute(1)", "unexpected number of arguments (permute)"),
        ("\\set i permute(1, 2, 3, 4)", "unexpected number of arguments (permute)"),
        ("\\set i 100000000000000000000", "bigint constant overflow"),
        ("\\set i 9223372036854775808", "syntax error"),
        ("\\set d 1.0E309", "double constant overflow"),
        ("\\set d .1E310", "double constant overflow"),
        ("\\set b 1 < 2 < 3", "syntax error"),
        (arguments.as_str(), "too many function arguments, maximum is 16"),
        ("\\sleep too many args", "too many arguments"),
        ("\\sleep", "missing argument"),
        ("\\sleep 1 week", "unrecognized time unit"),
        ("\\sleep x", "invalid sleep time"),
        ("\\nosuchcommand", "invalid command in command \"nosuchcommand\""),
        ("", "empty command list for script"),
        ("-- nothing\n", "empty command list for script"),
        ("\\gset", "\\gset must follow an SQL command"),
        ("\\set i +1\n\\gset", "test:2: \\gset must follow an SQL command"),
        ("SELECT 1 \\gset a b", "too many arguments"),
        ("SELECT 1 AS i \\gset\n\\gset", "\\gset must follow an SQL command"),
        ("\\if 1", "test:1: \\if without matching \\endif"),
        ("\\elif 1", "\\elif without matching \\if"),
        ("\\else", "\\else without matching \\if"),
        ("\\endif", "\\endif without matching \\if"),
        ("\\if 1\n\\else\n\\elif 0\n\\endif", "\\elif after \\else"),
        ("\\if 1\n\\else\n\\else\n\\endif", "\\else after \\else"),
        ("\\if\n\\endif\n", "syntax error in command \"if\""),
        ("\\if 0\n\\elif +\n\\endif\n", "syntax error in command \"elif\""),
        ("\\if 0\n\\else BAD\n\\endif\n", "unexpected argument in command \"else\""),
        ("\\if 0\n\\endif BAD\n", "unexpected argument in command \"endif\""),
        ("\\shell", "missing command"),
        ("\\setshell var", "missing argument"),
        ("\\shell echo 1", "no command of this host is run for a script"),
        ("\\setshell i echo 1", "no command of this host is run for a script"),
        (many.as_str(), "statement has too many arguments (maximum is 255)"),
        (deep.as_str(), "expressions within 200 others are not read"),
        (nested.as_str(), "\\if within 100 others is not read"),
    ] {
        let refused = read("test", text, &mut Names::default()).expect_err(text);
        assert!(refused.contains(told) && refused.starts_with("test"), "{text}: {refused}");
        assert!(!refused.contains('\n'), "{refused}");
    }
}

fn parts(text: &str) -> Vec<Part> {
    match &read("test", text, &mut Names::default()).unwrap()[0].action {
        Action::Sql(sql) => sql.parts.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn variables_of_statements_are_found_and_types_are_none() {
    let text = |text: &str| Part::Text(text.into());
    assert_eq!(
        parts("SELECT :a::int, x::text, ':b', 12:30, :a;"),
        [
            text("SELECT "),
            Part::Variable(0),
            text("::int, x::text, '"),
            Part::Quoted(1),
            text("', 12:30, "),
            Part::Variable(0),
            text("")
        ]
    );
}

#[test]
fn sleeps_have_units() {
    let slept = |line: &str| match read("test", line, &mut Names::default()).unwrap().remove(0).action {
        Action::Sleep(time) => time,
        other => panic!("{other:?}"),
    };
    for (line, time) in [
        ("\\sleep 100 us", Time::Us(100)),
        ("\\sleep 2ms", Time::Us(2000)),
        ("\\sleep 0 s", Time::Us(0)),
        ("\\sleep 3", Time::Us(3_000_000)),
        ("\\sleep -1 MS", Time::Us(-1000)),
        ("\\sleep :one ms", Time::Variable(0, 1000)),
        ("\\sleep :one", Time::Variable(0, 1_000_000)),
    ] {
        assert_eq!(slept(line), time, "{line}");
    }
}

fn checked(text: &str, protocol: &str) -> Result<(), String> {
    let plan = serde_json::json!({
        "scripts": [{"name": "s.sql", "text": text}], "defines": [["a", "1"]], "protocol": protocol
    });
    check(&plan.to_string()).map_err(|error| error.to_string())
}

#[test]
fn a_protocol_takes_what_it_can() {
    for (text, told) in [
        ("SELECT ':a';", "s.sql:1: variable :a stands in quotes"),
        ("SELECT 1\\; SELECT 2;", "s.sql:1: statements that \\; joins"),
    ] {
        assert!(checked(text, "prepared").unwrap_err().contains(told), "{text}");
        checked(text, "simple").unwrap();
    }
    // Nothing sets :MI, so it is no variable.
    checked("SELECT to_char(now(), 'HH24:MI');", "prepared").unwrap();
    let pipeline = "\\startpipeline\nSELECT 1;\n\\endpipeline";
    assert!(checked(pipeline, "simple").unwrap_err().contains("cannot use pipeline mode"));
    checked(pipeline, "extended").unwrap();
}

#[test]
fn a_file_of_sql_is_parted_as_scripts_are() {
    let found =
        statements("schema.sql", "CREATE TABLE t (a int); -- x\nDO $$ a; $$;\n;INSERT INTO t VALUES (';')").unwrap();
    assert_eq!(found, ["CREATE TABLE t (a int)", "DO $$ a; $$", "INSERT INTO t VALUES (';')"]);
    let refused = statements("schema.sql", "SELECT 1;\n\\set x 1").unwrap_err().to_string();
    assert!(refused.contains("schema.sql:2: lines that begin with a backslash"), "{refused}");
}

/// Pieces of scripts, in any order: most are wrong together.
const PIECES: [&str; 34] = [
    "\\set",
    "\\if",
    "\\elif",
    "\\else",
    "\\endif",
    "\\gset",
    "\\sleep",
    "\\startpipeline",
    " x ",
    " 1 ",
    " 1.5e3 ",
    ":a",
    "::",
    "'",
    "$$",
    "$q$",
    "(",
    ")",
    ";",
    "\\;",
    "--",
    "/*",
    "*/",
    "\n",
    "\\\n",
    " case when ",
    " then ",
    " end ",
    "random(1,2)",
    " - ",
    " ~ ",
    " not ",
    " is ",
    "\u{e4}",
];

proptest! {
    #[test]
    fn no_script_makes_reading_panic(places in prop::collection::vec(0..PIECES.len(), 0..40)) {
        let text: String = places.into_iter().map(|place| PIECES[place]).collect();
        if let Err(told) = read("test", &text, &mut Names::default()) {
            prop_assert!(told.starts_with("test") && !told.contains('\n'), "{}", told);
        }
    }

    #[test]
    fn no_expression_makes_evaluating_panic(places in prop::collection::vec(8..PIECES.len(), 0..30)) {
        let expression: String = places.into_iter().map(|place| PIECES[place]).filter(|piece| !piece.contains('\n')).collect();
        let text = format!("\\set x {expression}\n");
        if read("test", &text, &mut Names::default()).is_ok() {
            let _ = pass(&text, &[("a", "7")]);
        }
    }

    #[test]
    fn whole_numbers_are_computed_as_rust_does(a in -1000_i64..1000, b in -1000_i64..1000, c in 1_i64..1000) {
        prop_assert_eq!(shown(&format!("{a} + {b} * {c} - {a} / {c}")), format!("int {}", a + b * c - a / c));
        prop_assert_eq!(shown(&format!("{a} < {b} and {b} > {a} or not {a} < {b}")), "boolean true");
    }
}
