//! Commands to an array that runs.

use std::{net::SocketAddr, time::Duration};

use serde_json::{Value, json};

use super::Server;
use crate::{ServeError, command::Command};

/// Most events that wait.
const PLANNED_MOST: usize = 10_000;
/// Initiators give a path up after some seconds.
const DELAY_MOST: Duration = Duration::from_secs(60);

/// Bytes as people read them, with four digits.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let power = (bytes.max(1).ilog2() as usize / 10).min(UNITS.len() - 1);
    let count = bytes as f64 / (1_u64 << (10 * power)) as f64;
    let decimals = 3_usize.saturating_sub(count.max(1.0).log10() as usize);
    let digits = format!("{count:.decimals$}");
    let digits = if decimals > 0 { digits.trim_end_matches('0').trim_end_matches('.') } else { &digits };
    format!("{digits} {}", UNITS[power])
}

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
                let left = self.planned.drain(..).count();
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
            Command::DelayPath { .. } | Command::RetirePath { .. } => self.obey_on_paths(command),
            Command::AddMember { address: Some(address) } => self.add_member_at(*address, command),
            _ if command.is_of_paths() && self.transport.paths() > 0 => self.obey_on_paths(command),
            Command::Grow { volume, bytes } => self.grow(volume, *bytes),
            Command::Corrupt { bytes, .. } => self.corrupt(*bytes, command),
            _ => self.obeyed(command),
        }
    }

    fn corrupt(&mut self, bytes: u64, command: &Command) -> Result<Value, ServeError> {
        if bytes == 0 || bytes > 1 << 30 {
            return refused(format!("{bytes} bytes: between 1 and 1 GiB can be corrupted at once"));
        }
        let done = self.obeyed(command)?;
        self.forget_cached();
        Ok(done)
    }

    /// Gives a volume more bytes, and tells its users.
    fn grow(&mut self, name: &str, bytes: u64) -> Result<Value, ServeError> {
        let Some(volume) = self.volumes.iter().position(|shown| shown.name == name) else {
            let names: Vec<&str> = self.volumes.iter().map(|shown| &shown.name[..]).collect();
            return refused(format!("grow: {name}: there is no such volume; there are {}", names.join(", ")));
        };
        if !self.has_power {
            return refused(format!("grow: {name}: the power is cut; restore it first"));
        }
        let grown = self.array.grow(volume as u16, bytes);
        grown.map_err(|error| ServeError::Refused(format!("grow: {name}: {error}")))?;
        let before = std::mem::replace(&mut self.volumes[volume].bytes, bytes);
        self.transport.grow(volume, bytes);
        Ok(self.did(format!("volume {name}: grew from {} to {}", size(before), size(bytes))))
    }

    /// Has a member join that brings a portal.
    fn add_member_at(&mut self, address: SocketAddr, command: &Command) -> Result<Value, ServeError> {
        self.transport.reserve_portal(address)?;
        let done = self.obeyed(command);
        let joined = done.is_ok().then(|| self.transport.join_portal(self.array.members() - 1)).flatten();
        self.transport.release_portal();
        if let Some((portal, asked)) = joined {
            self.happens(format!("portal {portal} is the new member's; {asked} sessions were asked to move there"));
        }
        done
    }

    /// Carries out a command on the portals of iSCSI, which stand for the model's paths.
    fn obey_on_paths(&mut self, command: &Command) -> Result<Value, ServeError> {
        match command {
            Command::FailPath {} => match self.transport.fail_path() {
                Some(portal) => Ok(self.did(format!("portal {portal} is lost"))),
                None => refused("no portal is left that could be lost"),
            },
            Command::MendPaths {} if self.transport.mend_paths() => {
                // What would have brought ports back has nothing left to do.
                self.ports_back_ns = None;
                // The model's controller may be lost besides.
                let _ = self.array.obey(command, self.has_power);
                self.array.take_news();
                Ok(self.did("paths are back"))
            }
            Command::DelayPath { portal, delay_ns } => {
                let delay = Duration::from_nanos(*delay_ns).min(DELAY_MOST);
                if !self.transport.delay_path(*portal, delay) {
                    return refused(format!(
                        "portal {portal}: there is no such portal; the array has {} of iSCSI",
                        self.transport.paths()
                    ));
                }
                Ok(self.did(format!("portal {portal}: answers come {} us later", delay.as_micros())))
            }
            Command::RetirePath { portal } => match self.transport.retire_path(*portal) {
                Some((portal, asked)) => {
                    Ok(self.did(format!("portal {portal} takes no sessions; {asked} were asked to log in elsewhere")))
                }
                None => refused(format!(
                    "portal {portal}: there is no such portal of iSCSI, or no other one that its sessions could use; the \
                     array has {}",
                    self.transport.paths()
                )),
            },
            Command::FailController {} => {
                let done = self.obeyed(command)?;
                self.transport.fail_member(0);
                self.ports_back_ns = Some(self.now_ns().saturating_add(self.failover_ns));
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

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_are_told_with_four_digits_and_their_unit() {
        let sizes = [512, 8192, 3 << 29, (32 << 20) + 4096, 1000 << 20, 2 << 40].map(size);
        assert_eq!(sizes, ["512 B", "8 KiB", "1.5 GiB", "32 MiB", "1000 MiB", "2 TiB"]);
    }
}
