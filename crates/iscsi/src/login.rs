//! Logins: who it is, whether it may, and what both agree on (RFC 7143, chapters 6 and 11.12).

use crate::{
    chap::{Challenge, Refusal},
    config::Config,
    parameters::Parameters,
    pdu::{CONTINUE, Header, tell},
    portals::Place,
    text,
};

const TRANSIT: u8 = 0x80;
const SECURITY: u8 = 0;
const OPERATIONAL: u8 = 1;
const FULL: u8 = 3;
/// Units of a login; more ask for nothing that a login could end with.
const STEPS_MOST: u32 = 64;
const NAME_MOST_BYTES: usize = 223;

/// Class and detail of a login's answer (RFC 7143, 11.13.5).
pub(crate) mod status {
    pub(crate) const SUCCESS: u16 = 0x0000;
    pub(crate) const MOVED: u16 = 0x0101;
    pub(crate) const INITIATOR_ERROR: u16 = 0x0200;
    pub(crate) const UNPROVEN: u16 = 0x0201;
    pub(crate) const FORBIDDEN: u16 = 0x0202;
    pub(crate) const NO_TARGET: u16 = 0x0203;
    pub(crate) const VERSION: u16 = 0x0205;
    pub(crate) const NAME_MISSING: u16 = 0x0207;
    pub(crate) const NO_SUCH_TYPE: u16 = 0x0209;
    pub(crate) const NO_SESSION: u16 = 0x020a;
    pub(crate) const UNAVAILABLE: u16 = 0x0301;
    pub(crate) const OUT_OF_RESOURCES: u16 = 0x0302;
}

/// A session whose login is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Opened {
    pub(crate) initiator: String,
    pub(crate) session: [u8; 6],
    /// Number of the disk; none for discovery.
    pub(crate) disk: Option<usize>,
    pub(crate) parameters: Parameters,
}

/// An answer to a unit of a login.
pub(crate) struct Step {
    pub(crate) header: Header,
    pub(crate) texts: Vec<u8>,
    /// Result of the login, once it is over.
    pub(crate) end: Option<Result<Opened, u16>>,
}

/// A login under way.
#[derive(Default)]
pub(crate) struct Login {
    steps: u32,
    /// Texts of units that go on.
    held: Vec<u8>,
    session: [u8; 6],
    initiator: String,
    target: Option<String>,
    is_discovery: bool,
    disk: Option<usize>,
    is_named: bool,
    has_chosen_proof: bool,
    challenge: Option<Challenge>,
    is_proven: bool,
    parameters: Parameters,
}

impl Login {
    /// Answers a unit of the login.
    ///
    /// `place` says where an initiator of this name goes on that logs in to a disk.
    pub(crate) fn step(
        &mut self,
        header: &Header,
        data: &[u8],
        config: &Config,
        place: impl Fn(&str, usize) -> Place,
    ) -> Step {
        let mut texts = Vec::new();
        let (flags, stage) = (header.flags(), header.flags() >> 2 & 3);
        let asked = self.asked(header, data, config, place, &mut texts);
        let (status, flags) = match asked {
            Ok(None) => (status::SUCCESS, stage << 2),
            Ok(Some(next)) => (status::SUCCESS, TRANSIT | stage << 2 | next),
            Err(status) => (status, flags & 0x0c),
        };
        let end = match status {
            status::SUCCESS if flags & (TRANSIT | 3) == TRANSIT | FULL => {
                self.parameters.settle();
                Some(Ok(Opened {
                    initiator: std::mem::take(&mut self.initiator),
                    session: self.session,
                    disk: self.disk,
                    parameters: self.parameters.clone(),
                }))
            }
            status::SUCCESS => None,
            failed => Some(Err(failed)),
        };
        if status != status::SUCCESS && status != status::MOVED {
            texts.clear();
        }
        let answer = Header::new(tell::LOGIN, flags)
            .with_bytes(8, &header.array::<8>(8))
            .with(16, header.task_tag())
            .with_u16(36, status)
            .with_data_bytes(texts.len());
        Step { header: answer, texts, end }
    }

    /// Answers keys; gives the stage that is next, or None to stay, or why the login fails.
    fn asked(
        &mut self,
        header: &Header,
        data: &[u8],
        config: &Config,
        place: impl Fn(&str, usize) -> Place,
        texts: &mut Vec<u8>,
    ) -> Result<Option<u8>, u16> {
        self.steps += 1;
        let (flags, stage, next) = (header.flags(), header.flags() >> 2 & 3, header.flags() & 3);
        if header.0[3] != 0 {
            return Err(status::VERSION);
        }
        if header.u16(14) != 0 && self.steps == 1 {
            // One connection makes a session here, so that none can be added.
            return Err(status::NO_SESSION);
        }
        let is_transit = flags & TRANSIT != 0;
        if self.steps > STEPS_MOST
            || self.held.len() + data.len() > text::TEXT_MOST_BYTES
            || !matches!(stage, SECURITY | OPERATIONAL)
            || (is_transit && (next <= stage || next == 2))
            || (is_transit && flags & CONTINUE != 0)
        {
            return Err(status::INITIATOR_ERROR);
        }
        self.session = header.array(8);
        self.held.extend_from_slice(data);
        if flags & CONTINUE != 0 {
            return Ok(None);
        }
        let held = std::mem::take(&mut self.held);
        let keys = text::pairs(&held).ok_or(status::INITIATOR_ERROR)?;
        if !self.is_named {
            self.named(&keys, config)?;
            if let Some(disk) = self.disk {
                match place(&self.initiator, disk) {
                    Place::Here => text::put(texts, "TargetPortalGroupTag", "1"),
                    Place::Nowhere => return Err(status::UNAVAILABLE),
                    Place::At(address) => {
                        text::put(texts, "TargetAddress", &format!("{address},1"));
                        return Err(status::MOVED);
                    }
                }
            }
        }
        if stage == SECURITY {
            self.proves(&keys, config, texts)?;
        }
        let must_prove = config.access.chap.is_some() && !self.is_proven;
        let goes_on = keys.iter().any(|(key, _)| *key == "AuthMethod" || key.starts_with("CHAP_"));
        if must_prove && (stage == OPERATIONAL || (is_transit && !goes_on)) {
            return Err(status::UNPROVEN);
        }
        self.agrees(&keys, texts)?;
        Ok((is_transit && !must_prove).then_some(next))
    }

    /// Takes names from the first unit.
    fn named(&mut self, keys: &[(&str, &str)], config: &Config) -> Result<(), u16> {
        let key = |name: &str| keys.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        let initiator = key("InitiatorName").filter(|name| !name.is_empty()).ok_or(status::NAME_MISSING)?;
        if initiator.len() > NAME_MOST_BYTES {
            return Err(status::INITIATOR_ERROR);
        }
        initiator.clone_into(&mut self.initiator);
        self.is_discovery = match key("SessionType") {
            None | Some("Normal") => false,
            Some("Discovery") => true,
            Some(_) => return Err(status::NO_SUCH_TYPE),
        };
        if !config.access.allows(initiator) {
            return Err(status::FORBIDDEN);
        }
        self.target = key("TargetName").map(str::to_owned);
        if !self.is_discovery {
            let target = self.target.as_deref().ok_or(status::NAME_MISSING)?;
            let disk = config.disks.iter().position(|disk| disk.target.eq_ignore_ascii_case(target));
            self.disk = Some(disk.ok_or(status::NO_TARGET)?);
        }
        self.is_named = true;
        Ok(())
    }

    /// Goes on with what proves who the initiator is.
    fn proves(&mut self, keys: &[(&str, &str)], config: &Config, texts: &mut Vec<u8>) -> Result<(), u16> {
        let key = |name: &str| keys.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        if let Some(methods) = key("AuthMethod") {
            let wanted = if config.access.chap.is_some() { "CHAP" } else { "None" };
            if !methods.split(',').any(|method| method == wanted) {
                return Err(status::UNPROVEN);
            }
            self.has_chosen_proof = true;
            text::put(texts, "AuthMethod", wanted);
        }
        let refused = |refusal| match refusal {
            Refusal::Unproven => status::UNPROVEN,
            Refusal::Malformed => status::INITIATOR_ERROR,
        };
        if config.access.chap.is_none() || !self.has_chosen_proof {
            return Ok(());
        }
        if let Some(algorithms) = key("CHAP_A") {
            self.challenge = Some(Challenge::begin(algorithms, texts).map_err(refused)?);
        } else if let Some(challenge) = self.challenge.take() {
            challenge.end(&config.access, key, texts).map_err(refused)?;
            self.is_proven = true;
        }
        Ok(())
    }

    /// Answers the keys that are neither names nor proofs.
    fn agrees(&mut self, keys: &[(&str, &str)], texts: &mut Vec<u8>) -> Result<(), u16> {
        for (key, value) in keys {
            match *key {
                "InitiatorName" | "InitiatorAlias" | "SessionType" | "TargetName" | "AuthMethod" => {}
                key if key.starts_with("CHAP_") => {}
                key => self.parameters.agree(key, value, texts).ok_or(status::INITIATOR_ERROR)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::{Access, Disk, Secret},
        pdu::ask,
    };

    fn config(access: Access) -> Config {
        let disk = |name: &str| Disk {
            target: format!("iqn.2026-11.test:{name}"),
            volume: 0,
            bytes: 1 << 20,
            serial: name.into(),
            product: "test".into(),
        };
        Config { disks: vec![disk("data"), disk("log")], portals: vec![], group: None, access }
    }

    fn request(flags: u8) -> Header {
        Header::new(ask::LOGIN | 0x40, flags).with_bytes(8, &[0x40, 0, 0, 1, 0, 0]).with_u16(14, 0).with(16, 5)
    }

    fn texts(keys: &[(&str, &str)]) -> Vec<u8> {
        let mut texts = Vec::new();
        for (key, value) in keys {
            text::put(&mut texts, key, value);
        }
        texts
    }

    const NAMES: [(&str, &str); 2] =
        [("InitiatorName", "iqn.1993-08.org.debian:1"), ("TargetName", "iqn.2026-11.test:log")];

    fn ended(login: &mut Login, flags: u8, keys: &[(&str, &str)], config: &Config) -> Option<Result<Opened, u16>> {
        login.step(&request(flags), &texts(keys), config, |_, _| Place::Here).end
    }

    #[test]
    fn an_initiator_that_needs_no_proof_is_in_after_one_unit() {
        let opened = ended(&mut Login::default(), 0x87, &NAMES, &config(Access::default())).unwrap().unwrap();
        assert_eq!((opened.initiator.as_str(), opened.disk), ("iqn.1993-08.org.debian:1", Some(1)));
    }

    #[test]
    fn a_login_that_skips_the_proof_is_refused() {
        let chap = Some(Secret { name: "dba".into(), secret: b"secret".to_vec() });
        let config = config(Access { chap, ..Access::default() });
        assert_eq!(ended(&mut Login::default(), 0x87, &NAMES, &config), Some(Err(status::UNPROVEN)));
        let mut login = Login::default();
        let mut keys = NAMES.to_vec();
        keys.push(("AuthMethod", "None"));
        assert_eq!(ended(&mut login, 0x81, &keys, &config), Some(Err(status::UNPROVEN)));
        // One that chose CHAP and leaps over it is not let in either.
        let mut login = Login::default();
        keys[2] = ("AuthMethod", "CHAP,None");
        assert_eq!(ended(&mut login, 0x00, &keys, &config), None);
        assert_eq!(ended(&mut login, 0x87, &[], &config), Some(Err(status::UNPROVEN)));
    }

    #[test]
    fn who_is_not_on_the_list_or_asks_for_no_disk_of_ours_is_told_so() {
        let only = Access { initiators: vec!["iqn.other".into()], ..Access::default() };
        assert_eq!(ended(&mut Login::default(), 0x87, &NAMES, &config(only)), Some(Err(status::FORBIDDEN)));
        let wrong = [NAMES[0], ("TargetName", "iqn.2026-11.test:none")];
        assert_eq!(
            ended(&mut Login::default(), 0x87, &wrong, &config(Access::default())),
            Some(Err(status::NO_TARGET))
        );
        let nameless = [NAMES[1]];
        let found = ended(&mut Login::default(), 0x87, &nameless, &config(Access::default()));
        assert_eq!(found, Some(Err(status::NAME_MISSING)));
    }

    #[test]
    fn a_group_sends_a_login_to_a_portal() {
        let address = "127.0.0.2:3260".parse().unwrap();
        let step = Login::default()
            .step(&request(0x87), &texts(&NAMES), &config(Access::default()), |_, _| Place::At(address));
        assert_eq!(step.end, Some(Err(status::MOVED)));
        assert_eq!(step.texts, texts(&[("TargetAddress", "127.0.0.2:3260,1")]));
    }

    #[test]
    fn texts_may_come_in_several_units() {
        let (mut login, config) = (Login::default(), config(Access::default()));
        let whole = texts(&NAMES);
        let (first, second) = whole.split_at(20);
        assert!(login.step(&request(0x44), first, &config, |_, _| Place::Here).end.is_none());
        assert!(login.step(&request(0x87), second, &config, |_, _| Place::Here).end.unwrap().is_ok());
    }

    #[test]
    fn a_login_without_an_end_is_ended() {
        let (mut login, config) = (Login::default(), config(Access::default()));
        let ends = (0..100).map(|_| ended(&mut login, 0x04, &NAMES, &config)).collect::<Vec<_>>();
        assert!(ends.contains(&Some(Err(status::INITIATOR_ERROR))));
    }
}
