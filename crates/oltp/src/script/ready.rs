//! Scripts made ready for a run: read, with the statements as each server takes them, and the seeds of all users.

use assay_loading::{DatabaseError, parse};
use assay_sql::{Answers, Kind, Protocol, StatementId, Values, placeholder};

use super::{
    machine::Machine,
    names::{Names, is_name},
    numbers::Stream,
    plan::ScriptsPlan,
    read::{Action, Command, Part, Sql, read},
    scan::{End, Scanner},
    user::User,
    value::Value,
};
use crate::plan::{RunLoad, RunPlan};

/// Scripts of a run, as many as pgbench takes.
const SCRIPTS_MAX: usize = 128;
/// Statements of all scripts of a run.
const STATEMENTS_MAX: usize = 10_000;

/// A script that is ready.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) name: String,
    pub(super) commands: Vec<Command>,
    /// Whether it asks the server anything: a script that does not must let others have their turn.
    pub(super) has_sql: bool,
}

/// The statements as servers of a kind take them, by number.
#[derive(Debug)]
struct Texts {
    kind: Kind,
    texts: Vec<String>,
}

/// Seeds of the users of a database, in the order in which pgbench draws them from the seed of a run: one for each user, one that all
/// share, and for each user another for its choice of scripts.
#[derive(Debug)]
struct Seeds {
    users: Vec<u64>,
    shared: u64,
    choices: Vec<u64>,
}

impl Seeds {
    fn new(seed: u64, users: u32) -> Self {
        let mut stream = Stream::new(seed);
        let of_users = (0..users).map(|_| stream.next()).collect();
        let shared = stream.next();
        // A thread of pgbench draws two more, for its rate and for what it logs.
        let choices = (0..users).map(|_| [stream.next(), stream.next(), stream.next()][0]).collect();
        Self { users: of_users, shared, choices }
    }
}

#[derive(Debug, Default)]
pub(super) struct Ready {
    pub(super) scripts: Vec<Script>,
    pub(super) names: Names,
    pub(super) names_by_slot: Vec<String>,
    texts: Vec<Texts>,
    /// Names under which the statements are prepared.
    pub(super) prepared_names: Vec<String>,
    seeds: Vec<Seeds>,
    seed: u64,
    defines: Vec<(u16, Vec<u8>)>,
}

fn refused(text: impl Into<String>) -> DatabaseError {
    DatabaseError::InvalidPlan(text.into())
}

impl Ready {
    pub(super) fn new(scripts: &ScriptsPlan, plan: &RunPlan) -> Result<Self, DatabaseError> {
        if plan.procedures {
            return Err(refused("procedures: scripts have none"));
        }
        if plan.load != RunLoad::Closed && scripts.think_s > 0.0 {
            return Err(refused("a rate and thinking times exclude each other"));
        }
        let mut ready = Self { seed: plan.seed, ..Self::default() };
        ready.read(scripts)?;
        for database in &plan.databases {
            let kind = database.connection.kind;
            if !ready.texts.iter().any(|known| known.kind == kind) {
                let texts = ready.statements().map(|sql| text_for(kind, sql, &ready.names_by_slot)).collect();
                ready.texts.push(Texts { kind, texts });
            }
            if kind != Kind::Postgresql && ready.has_pipelines() {
                return Err(refused(format!("{}: pipelines are for PostgreSQL alone", database.name)));
            }
        }
        let databases = plan.databases.len() as u32;
        for number in 0..databases {
            let users = (plan.users + databases - 1 - number) / databases;
            // Users of another database draw other numbers.
            ready.seeds.push(Seeds::new(plan.seed.wrapping_add(u64::from(number) << 40), users));
        }
        Ok(ready)
    }

    /// Reads all scripts, and refuses what the protocol cannot do.
    fn read(&mut self, scripts: &ScriptsPlan) -> Result<(), DatabaseError> {
        if !(1..=SCRIPTS_MAX).contains(&scripts.scripts.len()) {
            return Err(refused(format!("scripts: accepted: 1 to {SCRIPTS_MAX}")));
        }
        for name in ["scale", "client_id", "random_seed", "default_seed"] {
            self.names.slot(name).map_err(refused)?;
        }
        for (name, value) in &scripts.defines {
            if !is_name(name.as_bytes()) {
                return Err(refused(format!("invalid variable name ({name})")));
            }
            let slot = self.names.slot(name).map_err(refused)?;
            self.defines.push((slot, value.as_bytes().to_vec()));
        }
        for source in &scripts.scripts {
            let commands = read(&source.name, &source.text, &mut self.names).map_err(refused)?;
            let has_sql = commands.iter().any(|command| matches!(command.action, Action::Sql(_)));
            self.scripts.push(Script { name: source.name.clone(), commands, has_sql });
        }
        self.names_by_slot = self.names.by_slot();
        self.number()?;
        if scripts.protocol == Protocol::Simple {
            return if self.has_pipelines() {
                Err(refused("cannot use pipeline mode with the simple query protocol; give --protocol prepared"))
            } else {
                Ok(())
            };
        }
        self.refuse_joined()?;
        self.settle_quoted()
    }

    fn number(&mut self) -> Result<(), DatabaseError> {
        let mut count = 0;
        for sql in self.scripts.iter_mut().flat_map(|script| &mut script.commands).filter_map(sql_of) {
            if count == STATEMENTS_MAX {
                return Err(refused(format!("the scripts have more than {STATEMENTS_MAX} statements")));
            }
            sql.number = count as u16;
            count += 1;
        }
        self.prepared_names = (0..count).map(|number| format!("P_{number}")).collect();
        Ok(())
    }

    fn refuse_joined(&self) -> Result<(), DatabaseError> {
        for script in &self.scripts {
            for command in &script.commands {
                if matches!(&command.action, Action::Sql(sql) if sql.is_compound) {
                    return Err(refused(format!(
                        "{}:{}: statements that \\; joins go together by one protocol alone; give --protocol simple",
                        script.name, command.line
                    )));
                }
            }
        }
        Ok(())
    }

    /// Variables in quotes: what looks like one and is never set, as in a format of times, is text.
    fn settle_quoted(&mut self) -> Result<(), DatabaseError> {
        let mut is_set = vec![false; self.names.len()];
        let preset = ["scale", "client_id", "random_seed", "default_seed"].into_iter();
        preset.filter_map(|name| self.names.find(name)).for_each(|slot| is_set[usize::from(slot)] = true);
        self.defines.iter().for_each(|(slot, _)| is_set[usize::from(*slot)] = true);
        for command in self.scripts.iter().flat_map(|script| &script.commands) {
            match &command.action {
                Action::Set(slot, _) => is_set[usize::from(*slot)] = true,
                // Columns may have any name.
                Action::Sql(sql) if sql.keeps.is_some() => is_set.fill(true),
                _ => (),
            }
        }
        for script in &mut self.scripts {
            for command in &mut script.commands {
                let line = command.line;
                let Some(sql) = sql_of(command) else { continue };
                for part in &mut sql.parts {
                    let Part::Quoted(slot) = *part else { continue };
                    let name = &self.names_by_slot[usize::from(slot)];
                    if is_set[usize::from(slot)] {
                        return Err(refused(format!(
                            "{}:{line}: variable :{name} stands in quotes, where it is filled in by one protocol alone;\
                             \x20give --protocol simple",
                            script.name
                        )));
                    }
                    *part = Part::Text(format!(":{name}"));
                }
            }
        }
        Ok(())
    }

    fn statements(&self) -> impl Iterator<Item = &Sql> {
        self.scripts.iter().flat_map(|script| &script.commands).filter_map(|command| match &command.action {
            Action::Sql(sql) => Some(sql),
            _ => None,
        })
    }

    fn has_pipelines(&self) -> bool {
        let mut commands = self.scripts.iter().flat_map(|script| &script.commands);
        commands.any(|command| matches!(command.action, Action::StartPipeline))
    }

    /// A statement as a server of a kind takes it, its number, and the name under which it is prepared.
    pub(super) fn statement(&self, kind: Kind, sql: &Sql) -> (&str, StatementId, &str) {
        let number = usize::from(sql.number);
        let texts = self.texts.iter().find(|known| known.kind == kind).map_or(&[][..], |known| &known.texts);
        let text = texts.get(number).map_or("", String::as_str);
        (text, StatementId(sql.number), &self.prepared_names[number])
    }

    pub(super) fn user(&self, database: usize, scale: u32, number: u32) -> User {
        let seeds = &self.seeds[database];
        let place = number as usize;
        let (seed, choice) = (seeds.users.get(place).copied(), seeds.choices.get(place).copied());
        let mut machine = Machine::new(self.names.len(), seed.unwrap_or(seeds.shared));
        let preset = [
            ("scale", i64::from(scale)),
            ("client_id", i64::from(number)),
            ("random_seed", self.seed as i64),
            ("default_seed", seeds.shared as i64),
        ];
        for (name, value) in preset {
            let slot = self.names.find(name).expect("the names are there from the beginning");
            machine.set(slot, Value::Int(value));
        }
        self.defines.iter().for_each(|(slot, value)| machine.set_text(*slot, value));
        User {
            machine,
            choices: Stream::new(choice.unwrap_or(seeds.shared)),
            values: Values::default(),
            answers: Answers::default(),
            text: Vec::new(),
        }
    }
}

fn sql_of(command: &mut Command) -> Option<&mut Sql> {
    match &mut command.action {
        Action::Sql(sql) => Some(sql),
        _ => None,
    }
}

/// The text of a statement with a placeholder for each variable.
fn text_for(kind: Kind, sql: &Sql, names: &[String]) -> String {
    let (mut text, mut count) = (String::new(), 0);
    for part in &sql.parts {
        match part {
            Part::Text(part) => text.push_str(part),
            Part::Variable(_) => {
                count += 1;
                text.push_str(&placeholder(kind, count));
            }
            Part::Quoted(slot) => {
                text.push(':');
                text.push_str(&names[usize::from(*slot)]);
            }
        }
    }
    text
}

/// Reads the scripts of a plan of scripts alone (`scripts`, `defines`, `protocol`), and names their mistakes.
///
/// # Errors
/// [`DatabaseError::InvalidPlan`] with the script and its line.
pub fn check(plan: &str) -> Result<(), DatabaseError> {
    Ready::default().read(&parse::<ScriptsPlan>(plan)?)
}

/// The statements of a file of SQL, as scripts part them.
///
/// # Errors
/// [`DatabaseError::InvalidPlan`] where a line begins with a backslash.
pub fn statements(name: &str, text: &str) -> Result<Vec<String>, DatabaseError> {
    let mut scanner = Scanner::new(text);
    let mut found = Vec::new();
    loop {
        let piece = scanner.statement();
        if piece.end == End::Backslash {
            let line = scanner.line(piece.at + piece.text.len());
            return Err(refused(format!(
                "{name}:{line}: lines that begin with a backslash are for scripts; leave them out"
            )));
        }
        if !piece.text.is_empty() {
            found.push(piece.text);
        }
        if piece.end == End::Text {
            return Ok(found);
        }
    }
}
