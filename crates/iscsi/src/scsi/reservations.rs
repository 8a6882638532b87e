//! Persistent reservations: who may write, or read, while others are logged in too (SPC-4, 5.13, 6.15, 6.16).

use crate::scsi::sense::{
    INVALID_FIELD, INVALID_PARAMETER, INVALID_RELEASE, LIST_LENGTH, NO_SPACE, REGISTRATIONS_PREEMPTED,
    RESERVATIONS_PREEMPTED, RESERVATIONS_RELEASED, Sense,
};

/// An initiator's session to the disk, whichever portal it goes through.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Nexus {
    pub(crate) initiator: String,
    pub(crate) session: [u8; 6],
}

const REGISTRATIONS_MOST: usize = 1024;

/// Types of reservations (SPC-4, table 204).
mod kind {
    pub(super) const WRITE_EXCLUSIVE: u8 = 1;
    pub(super) const EXCLUSIVE: u8 = 3;
    pub(super) const WRITE_EXCLUSIVE_REGISTRANTS: u8 = 5;
    pub(super) const EXCLUSIVE_REGISTRANTS: u8 = 6;
    pub(super) const WRITE_EXCLUSIVE_ALL: u8 = 7;
    pub(super) const EXCLUSIVE_ALL: u8 = 8;
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Held {
    by: Nexus,
    kind: u8,
}

impl Held {
    fn is_of_all(&self) -> bool {
        matches!(self.kind, kind::WRITE_EXCLUSIVE_ALL | kind::EXCLUSIVE_ALL)
    }
}

/// Registrations of a disk, and its reservation.
#[derive(Debug, Default)]
pub(crate) struct Reservations {
    generation: u32,
    registered: Vec<(Nexus, u64)>,
    held: Option<Held>,
    /// By RESERVE (6).
    old: Option<Nexus>,
}

/// Attentions that a command means for others.
pub(crate) type Told = Vec<(Nexus, Sense)>;

/// Access of a command, as reservations see it (SPC-4, table 49).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Neither: everybody may.
    Nothing,
    Read,
    Write,
}

/// Why PERSISTENT RESERVE OUT fails.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    Conflict,
    Check(Sense),
}

impl From<Sense> for Failure {
    fn from(sense: Sense) -> Self {
        Self::Check(sense)
    }
}

impl Reservations {
    fn key(&self, nexus: &Nexus) -> Option<u64> {
        self.registered.iter().find(|(one, _)| one == nexus).map(|(_, key)| *key)
    }

    fn is_holder(&self, nexus: &Nexus) -> bool {
        self.held.as_ref().is_some_and(
            |held| {
                if held.is_of_all() { self.key(nexus).is_some() } else { held.by == *nexus }
            },
        )
    }

    /// Whether another initiator holds the disk by RESERVE (6); almost no command is allowed then.
    pub(crate) fn is_shut_out(&self, nexus: &Nexus) -> bool {
        self.old.as_ref().is_some_and(|by| by != nexus)
    }

    /// Whether a command conflicts with a persistent reservation of another initiator.
    pub(crate) fn conflicts(&self, nexus: &Nexus, access: Access) -> bool {
        if access == Access::Nothing {
            return false;
        }
        let Some(held) = &self.held else { return false };
        let is_registered = self.key(nexus).is_some();
        match held.kind {
            _ if self.is_holder(nexus) => false,
            kind::WRITE_EXCLUSIVE => access == Access::Write,
            kind::EXCLUSIVE => true,
            kind::WRITE_EXCLUSIVE_REGISTRANTS | kind::WRITE_EXCLUSIVE_ALL => access == Access::Write && !is_registered,
            _ => !is_registered,
        }
    }

    /// RESERVE (6); tells whether it is granted.
    pub(crate) fn reserve_old(&mut self, nexus: &Nexus) -> bool {
        // With registrations of the newer kind, the older is refused (SPC-4, 5.13.3).
        if self.is_shut_out(nexus) || (!self.registered.is_empty() && self.key(nexus).is_none()) {
            return false;
        }
        self.old = Some(nexus.clone());
        true
    }

    /// RELEASE (6); a release without a reservation is no error.
    pub(crate) fn release_old(&mut self, nexus: &Nexus) {
        self.old.take_if(|by| by == nexus);
    }

    /// A reset of the disk, or the end of a session, ends reservations of the older kind.
    pub(crate) fn forget_old(&mut self, nexus: Option<&Nexus>) {
        self.old.take_if(|by| nexus.is_none_or(|nexus| by == nexus));
    }

    /// PERSISTENT RESERVE IN.
    ///
    /// # Errors
    /// There is no such service action.
    pub(crate) fn report(&self, action: u8) -> Result<Vec<u8>, Sense> {
        let mut bytes = self.generation.to_be_bytes().to_vec();
        let mut body = Vec::new();
        match action {
            0 => self.registered.iter().for_each(|(_, key)| body.extend(key.to_be_bytes())),
            1 => {
                if let Some(held) = &self.held {
                    let key = if held.is_of_all() { 0 } else { self.key(&held.by).unwrap_or(0) };
                    body.extend(key.to_be_bytes());
                    body.extend([0, 0, 0, 0, 0, held.kind, 0, 0]);
                }
            }
            // Registrations end with the array's power; REGISTER takes all target ports; types 1, 3, 5 to 8.
            2 => return Ok(vec![0, 8, 0x0c, 0x80, 0xea, 0x01, 0, 0]),
            3 => self.registered.iter().for_each(|(nexus, key)| {
                body.extend(key.to_be_bytes());
                let kind = self.held.as_ref().filter(|_| self.is_holder(nexus)).map(|held| held.kind);
                body.extend([0, 0, 0, 0, 0x02 | u8::from(kind.is_some()), kind.unwrap_or(0), 0, 0, 0, 0, 0, 1]);
                let name = transport(nexus);
                body.extend((name.len() as u32).to_be_bytes());
                body.extend(name);
            }),
            _ => return Err(INVALID_FIELD),
        }
        bytes.extend((body.len() as u32).to_be_bytes());
        bytes.extend(body);
        Ok(bytes)
    }

    /// PERSISTENT RESERVE OUT.
    ///
    /// # Errors
    /// Another initiator holds the reservation, or the command is wrong; nothing has changed then.
    pub(crate) fn change(&mut self, nexus: &Nexus, cdb: &[u8; 16], list: &[u8]) -> Result<Told, Failure> {
        let (action, scope, kind) = (cdb[1] & 0x1f, cdb[2] >> 4, cdb[2] & 0x0f);
        if list.len() != 24 {
            return Err(LIST_LENGTH.into());
        }
        let own = u64::from_be_bytes(list[..8].try_into().expect("eight bytes"));
        let other = u64::from_be_bytes(list[8..16].try_into().expect("eight bytes"));
        // SPEC_I_PT and APTPL: neither is offered.
        if list[20] & 0x09 != 0 {
            return Err(INVALID_PARAMETER.into());
        }
        if self.is_shut_out(nexus) {
            return Err(Failure::Conflict);
        }
        let has_kind = matches!(kind, 1 | 3 | 5..=8);
        match action {
            0 | 6 => self.register(nexus, (action == 0).then_some(own), other),
            _ if self.key(nexus) != Some(own) => Err(Failure::Conflict),
            1 | 4 | 5 if scope != 0 || (!has_kind && (action == 1 || self.held.is_some())) => Err(INVALID_FIELD.into()),
            1 => self.reserve(nexus, kind),
            2 => self.release(nexus, scope, kind),
            3 => Ok(self.clear(nexus)),
            4 | 5 => self.preempt(nexus, other, kind),
            _ => Err(INVALID_FIELD.into()),
        }
    }

    fn register(&mut self, nexus: &Nexus, own: Option<u64>, key: u64) -> Result<Told, Failure> {
        let present = self.key(nexus);
        if own.is_some_and(|own| own != present.unwrap_or(0)) {
            return Err(Failure::Conflict);
        }
        self.generation = self.generation.wrapping_add(1);
        match (present, key) {
            (None, 0) => Ok(Told::new()),
            (Some(_), 0) => Ok(self.unregister(nexus)),
            (Some(_), _) => {
                self.registered.iter_mut().filter(|(one, _)| one == nexus).for_each(|(_, present)| *present = key);
                Ok(Told::new())
            }
            (None, _) if self.registered.len() >= REGISTRATIONS_MOST => Err(Sense { key: 0x5, ..NO_SPACE }.into()),
            (None, _) => {
                self.registered.push((nexus.clone(), key));
                Ok(Told::new())
            }
        }
    }

    fn unregister(&mut self, nexus: &Nexus) -> Told {
        self.registered.retain(|(one, _)| one != nexus);
        let Some(held) = &self.held else { return Told::new() };
        let ends = if held.is_of_all() { self.registered.is_empty() } else { held.by == *nexus };
        if !ends {
            return Told::new();
        }
        let is_told = matches!(held.kind, kind::WRITE_EXCLUSIVE_REGISTRANTS | kind::EXCLUSIVE_REGISTRANTS);
        self.held = None;
        if is_told { self.others(nexus, RESERVATIONS_RELEASED) } else { Told::new() }
    }

    fn others(&self, nexus: &Nexus, sense: Sense) -> Told {
        self.registered.iter().filter(|(one, _)| one != nexus).map(|(one, _)| (one.clone(), sense)).collect()
    }

    fn reserve(&mut self, nexus: &Nexus, kind: u8) -> Result<Told, Failure> {
        match &self.held {
            None => {
                self.held = Some(Held { by: nexus.clone(), kind });
                Ok(Told::new())
            }
            Some(held) if held.kind == kind && self.is_holder(nexus) => Ok(Told::new()),
            Some(_) => Err(Failure::Conflict),
        }
    }

    fn release(&mut self, nexus: &Nexus, scope: u8, kind: u8) -> Result<Told, Failure> {
        let Some(held) = self.held.as_ref().filter(|_| self.is_holder(nexus)) else { return Ok(Told::new()) };
        if held.kind != kind || scope != 0 {
            return Err(INVALID_RELEASE.into());
        }
        let is_told = !matches!(kind, kind::WRITE_EXCLUSIVE | kind::EXCLUSIVE);
        self.held = None;
        Ok(if is_told { self.others(nexus, RESERVATIONS_RELEASED) } else { Told::new() })
    }

    fn clear(&mut self, nexus: &Nexus) -> Told {
        let told = self.others(nexus, RESERVATIONS_PREEMPTED);
        self.generation = self.generation.wrapping_add(1);
        self.registered.clear();
        self.held = None;
        told
    }

    fn preempt(&mut self, nexus: &Nexus, victim: u64, kind: u8) -> Result<Told, Failure> {
        let holder = self.held.as_ref().map(|held| (held.is_of_all(), self.key(&held.by), held.kind));
        let takes = match holder {
            Some((true, _, _)) => victim == 0,
            Some((false, key, _)) => key == Some(victim),
            None => false,
        };
        if !takes && victim == 0 {
            return Err(INVALID_PARAMETER.into());
        }
        let is_victim = |one: &(Nexus, u64)| one.0 != *nexus && (one.1 == victim || (takes && victim == 0));
        let mut told: Told = self
            .registered
            .iter()
            .filter(|one| is_victim(one))
            .map(|one| (one.0.clone(), REGISTRATIONS_PREEMPTED))
            .collect();
        if told.is_empty() && !takes {
            return Err(Failure::Conflict);
        }
        self.generation = self.generation.wrapping_add(1);
        let victims: Vec<Nexus> = told.iter().map(|(one, _)| one.clone()).collect();
        self.registered.retain(|(one, _)| !victims.contains(one));
        if takes {
            let before = holder.map(|(_, _, kind)| kind);
            self.held = Some(Held { by: nexus.clone(), kind });
            if before.is_some_and(|before| before != kind) {
                told.extend(self.others(nexus, RESERVATIONS_RELEASED));
            }
        }
        Ok(told)
    }
}

/// The name of an initiator's port (SPC-4, 7.6.4.6).
fn transport(nexus: &Nexus) -> Vec<u8> {
    let session = nexus.session.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
    let mut name = format!("{},i,0x{session}", nexus.initiator).into_bytes();
    name.push(0);
    name.resize(name.len().next_multiple_of(4), 0);
    let mut bytes = vec![0x45, 0];
    bytes.extend((name.len() as u16).to_be_bytes());
    bytes.extend(name);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nexus(name: &str) -> Nexus {
        Nexus { initiator: name.into(), session: [0; 6] }
    }

    fn list(own: u64, other: u64) -> Vec<u8> {
        let mut list = own.to_be_bytes().to_vec();
        list.extend(other.to_be_bytes());
        list.extend([0; 8]);
        list
    }

    fn cdb(action: u8, kind: u8) -> [u8; 16] {
        let mut cdb = [0; 16];
        (cdb[0], cdb[1], cdb[2]) = (0x5f, action, kind);
        cdb
    }

    fn two() -> (Reservations, Nexus, Nexus) {
        let (mut found, one, other) = (Reservations::default(), nexus("one"), nexus("other"));
        found.change(&one, &cdb(0, 0), &list(0, 11)).unwrap();
        found.change(&other, &cdb(0, 0), &list(0, 22)).unwrap();
        (found, one, other)
    }

    #[test]
    fn a_write_exclusive_reservation_leaves_others_the_reads() {
        let (mut found, one, other) = two();
        found.change(&one, &cdb(1, 1), &list(11, 0)).unwrap();
        assert!(!found.conflicts(&one, Access::Write));
        assert!(found.conflicts(&other, Access::Write));
        assert!(!found.conflicts(&other, Access::Read));
        assert_eq!(found.change(&other, &cdb(1, 1), &list(22, 0)), Err(Failure::Conflict));
    }

    #[test]
    fn registrants_share_a_reservation_of_theirs() {
        let (mut found, one, other) = two();
        found.change(&one, &cdb(1, 6), &list(11, 0)).unwrap();
        assert!(!found.conflicts(&other, Access::Write));
        assert!(found.conflicts(&nexus("third"), Access::Read));
        let told = found.change(&one, &cdb(2, 6), &list(11, 0)).unwrap();
        assert_eq!(told, vec![(other, RESERVATIONS_RELEASED)]);
    }

    #[test]
    fn who_preempts_takes_the_reservation_and_the_registration() {
        let (mut found, one, other) = two();
        found.change(&one, &cdb(1, 3), &list(11, 0)).unwrap();
        let told = found.change(&other, &cdb(4, 3), &list(22, 11)).unwrap();
        assert_eq!(told, vec![(one.clone(), REGISTRATIONS_PREEMPTED)]);
        assert!(found.conflicts(&one, Access::Read));
        assert!(!found.conflicts(&other, Access::Write));
        assert_eq!(found.report(0).unwrap()[7], 8);
    }

    #[test]
    fn a_wrong_key_changes_nothing() {
        let (mut found, one, _) = two();
        assert_eq!(found.change(&one, &cdb(0, 0), &list(12, 13)), Err(Failure::Conflict));
        assert_eq!(found.change(&one, &cdb(3, 0), &list(12, 0)), Err(Failure::Conflict));
        assert_eq!(found.report(0).unwrap()[7], 16);
        assert_eq!(found.change(&one, &cdb(3, 0), &list(11, 0)[..20]), Err(Failure::Check(LIST_LENGTH)));
    }

    #[test]
    fn the_older_reservation_shuts_all_others_out() {
        let (mut found, one, other) = (Reservations::default(), nexus("one"), nexus("other"));
        assert!(found.reserve_old(&one));
        assert!(!found.reserve_old(&other));
        assert!(found.is_shut_out(&other));
        found.release_old(&other);
        assert!(found.is_shut_out(&other));
        found.release_old(&one);
        assert!(!found.is_shut_out(&other));
    }
}
