//! Commands to an array that runs.

use serde_json::{Value, json};

use super::Server;
use crate::{ServeError, command::Command};

/// Most events that wait.
const PLANNED_MOST: usize = 10_000;

fn refused<T>(message: impl Into<String>) -> Result<T, ServeError> {
    Err(ServeError::Refused(message.into()))
}

impl Server {
    /// Carries out a command.
    pub(super) fn obey(&mut self, command: &Command) -> Result<Value, ServeError> {
        match command {
            Command::Status {} => Ok(self.status()),
            Command::Events { from } => Ok(json!(self.happened.get(*from..).unwrap_or_default())),
            Command::Counters {} => Ok(self.counters()),
            Command::Script { events } => {
                if events.iter().any(|event| matches!(event.command, Command::Script { .. })) {
                    return refused("a script cannot hold another one");
                }
                if self.planned.len() + events.len() > PLANNED_MOST {
                    return refused(format!("no more than {PLANNED_MOST} events can be planned"));
                }
                self.plan(events);
                Ok(json!(format!("{} events planned", events.len())))
            }
            Command::EndScript {} => {
                let left = self.planned.len();
                self.planned.clear();
                Ok(json!(format!("{left} events left out")))
            }
            Command::CutPower {} => {
                if !self.has_power {
                    return refused("the power is cut already; restore it first");
                }
                let lost = self.cut_power();
                Ok(self.did(format!("power cut: {lost} acknowledged bytes lost with the cache")))
            }
            Command::Restore {} => {
                if self.has_power {
                    return refused("the power is not cut");
                }
                self.restore_power();
                Ok(self.did("power restored"))
            }
            Command::Snapshot { name } => {
                self.array.snapshot(name)?;
                Ok(self.did(format!("snapshot {name}")))
            }
            Command::Revert { name } => {
                let used = self.in_use();
                if !used.is_empty() {
                    return refused(format!("{name}: {} in use; unmount or close them first", used.join(", ")));
                }
                self.array.revert(name)?;
                self.forget_cached();
                Ok(self.did(format!("reverted to {name}")))
            }
            Command::Corrupt { bytes, .. } => {
                if *bytes == 0 || *bytes > 1 << 30 {
                    return refused(format!("{bytes} bytes: between 1 and 1 GiB can be corrupted at once"));
                }
                let done = self.obeyed(command)?;
                self.forget_cached();
                Ok(done)
            }
            _ => self.obeyed(command),
        }
    }

    /// Has the array carry out a command that only some structures know.
    fn obeyed(&mut self, command: &Command) -> Result<Value, ServeError> {
        let done = self.array.obey(command, self.has_power);
        self.hear();
        Ok(json!(done?))
    }

    fn did(&mut self, what: impl Into<String>) -> Value {
        let what = what.into();
        self.happens(&what[..]);
        Value::String(what)
    }
}
