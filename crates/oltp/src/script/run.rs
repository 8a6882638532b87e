//! One pass of a script on a connection.

use std::time::Duration;

use assay_sql::{Answers, Asked, Cause, DbError, Driver, Protocol, Values};
use tokio::{task::yield_now, time::sleep};

use super::{
    names::is_name,
    read::{Action, Command, Keeps, Part, Sql, Time},
    ready::{Ready, Script},
    user::User,
    value::Value,
};
use crate::pacer::Pacer;

/// Shorter sleeps than this are kept by a timer of their own: those of the runtime go by the millisecond.
const PACED_MAX: Duration = Duration::from_millis(20);

/// Runs a script once. After an error the connection is outside any transaction.
pub(super) async fn run<D: Driver>(
    ready: &Ready,
    protocol: Protocol,
    driver: &mut D,
    user: &mut User,
    number: usize,
) -> Result<(), DbError> {
    let script = &ready.scripts[number];
    let mut pass = Pass { ready, script, protocol, driver, user, number, is_pipeline: false };
    let (ran, line) = pass.commands().await;
    let (is_pipeline, driver) = (pass.is_pipeline, pass.driver);
    let Err(error) = ran else {
        if !script.has_sql {
            yield_now().await;
        }
        return Ok(());
    };
    if error.cause != Cause::Connection {
        if is_pipeline {
            // What was put and not sent goes with it; its errors are none beside the first.
            driver.end_pipeline().await.or_else(|later| match later.cause {
                Cause::Connection => Err(later),
                _ => Ok(()),
            })?;
        }
        driver.roll_back().await?;
    }
    let code = error.code.clone();
    Err(DbError::new(error.cause, format!("{}:{line}: {}", script.name, error.text)).with_code(&code))
}

struct Pass<'a, D> {
    ready: &'a Ready,
    script: &'a Script,
    protocol: Protocol,
    driver: &'a mut D,
    user: &'a mut User,
    /// The script's number in the run.
    number: usize,
    is_pipeline: bool,
}

impl<D: Driver> Pass<'_, D> {
    /// Runs all commands; with the line at which the pass ended.
    async fn commands(&mut self) -> (Result<(), DbError>, usize) {
        let script = self.script;
        let (mut next, mut line) = (0, 0);
        while let Some(command) = script.commands.get(next) {
            line = command.line;
            next += 1;
            let done = match &command.action {
                Action::Jump(place) => {
                    next = *place;
                    continue;
                }
                Action::Unless(expression, otherwise) => self.evaluate(command, expression).map(|value| {
                    if !value.is_true() {
                        next = *otherwise;
                    }
                }),
                Action::Set(slot, expression) => {
                    self.evaluate(command, expression).map(|value| self.user.machine.set(*slot, value))
                }
                Action::Sql(sql) if self.is_pipeline => self.put(sql),
                Action::Sql(sql) => self.ask(sql).await,
                Action::Sleep(time) => self.sleep(time).await,
                Action::StartPipeline => self.start_pipeline(next).await,
                Action::SyncPipeline if self.is_pipeline => {
                    self.driver.sync();
                    Ok(())
                }
                Action::EndPipeline if self.is_pipeline => {
                    self.is_pipeline = false;
                    self.driver.end_pipeline().await
                }
                Action::SyncPipeline | Action::EndPipeline => Err(DbError::other("not in pipeline mode")),
            };
            if done.is_err() {
                return (done, line);
            }
        }
        if self.is_pipeline {
            return (Err(DbError::other("end of script reached with pipeline open")), line);
        }
        if self.driver.in_transaction() {
            let text = "end of script reached without completing the last transaction";
            return (Err(DbError::other(text)), line);
        }
        (Ok(()), line)
    }

    fn evaluate(&mut self, command: &Command, expression: &super::expression::Expression) -> Result<Value, DbError> {
        let show = |value: Value| {
            // The function is there to show a script's author what happens; pgbench writes the same line.
            eprintln!("debug(script={},command={}): {}", self.number, command.number, value.shown());
        };
        self.user.machine.evaluate(expression, &self.ready.names_by_slot, show).map_err(DbError::other)
    }

    /// Takes the parameters of a statement, or its whole text where they are written into it.
    fn fill(&mut self, sql: &Sql) -> Result<(), DbError> {
        let User { machine, values, text, .. } = &mut *self.user;
        values.clear();
        text.clear();
        let is_simple = self.protocol == Protocol::Simple;
        for part in &sql.parts {
            match (part, is_simple) {
                (Part::Text(part), true) => text.extend_from_slice(part.as_bytes()),
                (Part::Variable(slot) | Part::Quoted(slot), true) => {
                    if !machine.write(*slot, text) {
                        // It stays as it is written.
                        text.push(b':');
                        text.extend_from_slice(self.ready.names_by_slot[usize::from(*slot)].as_bytes());
                    }
                }
                (Part::Variable(slot), false) => {
                    values.push(|out| machine.write(*slot, out));
                }
                (Part::Text(_) | Part::Quoted(_), false) => (),
            }
        }
        match std::str::from_utf8(text) {
            Ok(_) => Ok(()),
            Err(_) => Err(DbError::other("a variable is not a text in UTF-8")),
        }
    }

    async fn ask(&mut self, sql: &Sql) -> Result<(), DbError> {
        self.fill(sql)?;
        let (text, id, name) = self.ready.statement(self.driver.kind(), sql);
        let User { values, text: pasted, answers, .. } = &mut *self.user;
        let text = if self.protocol == Protocol::Simple { std::str::from_utf8(pasted).unwrap_or("") } else { text };
        let asked = Asked { id, name, text, values, protocol: self.protocol };
        let Some(keeps) = &sql.keeps else { return self.driver.ask(asked, None).await };
        answers.clear();
        self.driver.ask(asked, Some(answers)).await?;
        self.keep(keeps)
    }

    /// Makes variables of the columns of an answer.
    fn keep(&mut self, keeps: &Keeps) -> Result<(), DbError> {
        let User { machine, answers, .. } = &mut *self.user;
        let last = answers.len().saturating_sub(1);
        if !keeps.all {
            let rows = answers.rows(last).unwrap_or(0);
            if rows != 1 {
                return Err(DbError::other(format!("\\gset: expected one row, got {rows}")));
            }
        }
        let kept = if keeps.all { 0 } else { last }..answers.len();
        for place in kept.filter(|place| answers.rows(*place).unwrap_or(0) > 0) {
            Self::store(machine, self.ready, answers, place, &keeps.prefix)?;
        }
        Ok(())
    }

    fn store(
        machine: &mut super::machine::Machine,
        ready: &Ready,
        answers: &Answers,
        place: usize,
        prefix: &str,
    ) -> Result<(), DbError> {
        for (column, value) in answers.last_row(place) {
            let column = String::from_utf8_lossy(column);
            let name = if prefix.is_empty() { column } else { format!("{prefix}{column}").into() };
            if !is_name(name.as_bytes()) {
                return Err(DbError::other(format!("error storing into variable {name}")));
            }
            // A variable that no script reads is not kept.
            if let Some(slot) = ready.names.find(&name) {
                machine.set_text(slot, value);
            }
        }
        Ok(())
    }

    /// Begins a pipeline behind the command `next - 1`.
    async fn start_pipeline(&mut self, next: usize) -> Result<(), DbError> {
        if self.is_pipeline {
            return Err(DbError::other("already in pipeline mode"));
        }
        self.is_pipeline = true;
        let (none, kind) = (Values::default(), self.driver.kind());
        let inside = self.script.commands[next..].iter();
        let statements = inside.map_while(|command| match &command.action {
            Action::EndPipeline => None,
            Action::Sql(sql) => Some(Some(sql)),
            _ => Some(None),
        });
        let asked = statements.flatten().map(|sql| {
            let (text, id, name) = self.ready.statement(kind, sql);
            Asked { id, name, text, values: &none, protocol: self.protocol }
        });
        self.driver.begin_pipeline(asked).await
    }

    fn put(&mut self, sql: &Sql) -> Result<(), DbError> {
        if let Some(keeps) = &sql.keeps {
            let command = if keeps.all { "aset" } else { "gset" };
            return Err(DbError::other(format!("\\{command} is not allowed in pipeline mode")));
        }
        self.fill(sql)?;
        let (text, id, name) = self.ready.statement(self.driver.kind(), sql);
        self.driver.put(Asked { id, name, text, values: &self.user.values, protocol: self.protocol })
    }

    async fn sleep(&mut self, time: &Time) -> Result<(), DbError> {
        let us = match time {
            Time::Us(us) => *us,
            Time::Variable(slot, unit_us) => {
                let mut text = Vec::new();
                if !self.user.machine.write(*slot, &mut text) {
                    let name = &self.ready.names_by_slot[usize::from(*slot)];
                    return Err(DbError::other(format!("sleep: undefined variable \"{name}\"")));
                }
                leading_number(&text).ok_or_else(|| {
                    let text = String::from_utf8_lossy(&text).into_owned();
                    DbError::other(format!("sleep: invalid sleep time \"{text}\""))
                })? * unit_us
            }
        };
        let rest = Duration::from_micros(us.max(0) as u64);
        if rest.is_zero() {
            return Ok(());
        }
        if rest < PACED_MAX
            && let Ok(pacer) = Pacer::new()
            && pacer.wait(rest).await.is_ok()
        {
            return Ok(());
        }
        sleep(rest).await;
        Ok(())
    }
}

/// The whole number that a text begins with, as C's `atoi` has it; `None` without one.
fn leading_number(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?.trim_start();
    let sign = text.len() - text.strip_prefix(['+', '-']).unwrap_or(text).len();
    let digits = text[sign..].bytes().take_while(u8::is_ascii_digit).count();
    let number: i64 = text[..sign + digits].parse().ok()?;
    // Beyond any run, and far from overflowing.
    Some(number.clamp(-1_000_000_000, 1_000_000_000))
}
