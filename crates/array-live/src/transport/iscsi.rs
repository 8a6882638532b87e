//! Volumes as disks of iSCSI: initiators of any host log in at portals.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use assay_disk_server::{Blocks, Listener, Loops};
use assay_iscsi::{Access, Config, Disk, Secret, Server};

use crate::{ServeError, io::Shown, plan::IscsiPlan, transport::Transport};

/// Disks that are served.
pub(crate) struct Disks {
    server: Server,
    has_group: bool,
    /// Whether hosts beyond this one may log in without a proof.
    is_open_to_all: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Member to which each portal belongs.
    owners: Vec<usize>,
    /// Address of a member that is about to join.
    reserved: Option<Listener>,
    /// Portals that were lost with their member's controller, and by no cable.
    with_controller: Vec<usize>,
}

/// Serves volumes as disks. The portals of the plan belong to the members in turn.
///
/// # Errors
/// A portal cannot be listened at.
pub(crate) fn serve(
    plan: &IscsiPlan,
    shown: &[Shown],
    members: usize,
    volumes: Arc<dyn Blocks>,
    loops: Arc<Loops>,
) -> Result<Disks, ServeError> {
    let secret = |own: &Option<(String, String)>| {
        own.as_ref().map(|(name, secret)| Secret { name: name.clone(), secret: secret.clone().into_bytes() })
    };
    let disks = shown.iter().zip(&plan.serials).enumerate().map(|(number, (shown, serial))| Disk {
        target: format!("{}{}", plan.prefix, shown.name),
        volume: number as u16,
        bytes: shown.bytes,
        serial: serial.clone(),
        product: plan.product.clone(),
    });
    let config = Config {
        disks: disks.collect(),
        portals: plan.portals.clone(),
        group: plan.group,
        access: Access { chap: secret(&plan.chap), mutual: secret(&plan.mutual), initiators: plan.initiators.clone() },
    };
    let server = Server::start(config, volumes, loops);
    let server = server.map_err(|error| ServeError::Refused(format!("iSCSI: {error}")))?;
    let owners = (0..plan.portals.len()).map(|portal| portal % members.max(1)).collect();
    Ok(Disks {
        server,
        has_group: plan.group.is_some(),
        is_open_to_all: plan.is_open_to_all || plan.chap.is_some(),
        state: Mutex::new(State { owners, ..State::default() }),
    })
}

impl Disks {
    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn portals_of(&self, member: usize) -> Vec<usize> {
        let state = self.locked();
        (0..state.owners.len()).filter(|portal| state.owners[*portal] == member).collect()
    }

    fn named(&self, portal: usize) -> String {
        self.server.addresses()[portal].to_string()
    }
}

impl Transport for Disks {
    fn forget_cached(&self) {
        // What initiators keep is theirs: they are told that the medium may be another.
        self.server.medium_changed();
    }

    fn in_use(&self) -> Vec<usize> {
        let mut used: Vec<usize> = self.server.sessions().into_iter().map(|session| session.disk).collect();
        used.sort_unstable();
        used.dedup();
        used
    }

    fn grow(&self, volume: usize, bytes: u64) {
        self.server.grow(volume, bytes);
    }

    fn paths(&self) -> usize {
        self.locked().owners.len()
    }

    fn fail_path(&self) -> Option<String> {
        let portal = (0..self.paths()).find(|portal| self.server.is_up(*portal))?;
        self.server.set_portal(portal, false);
        Some(self.named(portal))
    }

    fn mend_paths(&self) -> bool {
        let lost: Vec<usize> = (0..self.paths()).filter(|portal| !self.server.is_open(*portal)).collect();
        lost.iter().for_each(|portal| self.server.set_portal(*portal, true));
        self.locked().with_controller.clear();
        !lost.is_empty()
    }

    fn fail_member(&self, member: usize) {
        let own = self.portals_of(member).into_iter().filter(|portal| self.server.is_up(*portal)).collect::<Vec<_>>();
        own.iter().for_each(|portal| self.server.set_portal(*portal, false));
        self.locked().with_controller.extend(own);
    }

    fn mend_member(&self, member: usize) {
        let own = self.portals_of(member);
        let back: Vec<usize> = self.locked().with_controller.extract_if(.., |portal| own.contains(portal)).collect();
        back.iter().for_each(|portal| self.server.set_portal(*portal, true));
    }

    fn retire_path(&self, path: usize) -> Option<(String, usize)> {
        let has_other = (0..self.paths()).any(|portal| portal != path && self.server.is_open(portal));
        if path >= self.paths() || !has_other {
            return None;
        }
        Some((self.named(path), self.server.retire_portal(path)))
    }

    fn reserve_portal(&self, address: SocketAddr) -> Result<(), ServeError> {
        if !self.has_group {
            return Err(ServeError::refused(
                "add-member: no group could send logins to the portal; serve the array with --portals",
            ));
        }
        if !address.ip().is_loopback() && !self.is_open_to_all {
            return Err(ServeError::Refused(format!(
                "add-member: {address}: other hosts reach this address; serve the array with --chap NAME, or with \
                 --no-authentication to let in everybody"
            )));
        }
        let listener = Listener::bind(address).map_err(|error| ServeError::Refused(format!("add-member: {error}")))?;
        self.locked().reserved = Some(listener);
        Ok(())
    }

    fn join_portal(&self, member: usize) -> Option<(String, usize)> {
        let mut state = self.locked();
        let portal = self.server.add_portal(state.reserved.take()?);
        state.owners.push(member);
        drop(state);
        Some((self.named(portal), self.server.balance()))
    }

    fn release_portal(&self) {
        self.locked().reserved = None;
    }

    fn delay_path(&self, path: usize, delay: Duration) -> bool {
        if path >= self.paths() {
            return false;
        }
        self.server.delay_portal(path, delay);
        true
    }

    fn stop(self: Box<Self>) -> Result<(), ServeError> {
        let Self { mut server, .. } = *self;
        server.stop();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disks(has_group: bool, members: usize, is_open_to_all: bool) -> Disks {
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let plan = IscsiPlan {
            portals: vec![any; if has_group { 3 } else { 1 }],
            group: has_group.then_some(any),
            prefix: "iqn.2026-11.invalid.assay:test-".into(),
            product: "TEST".into(),
            serials: vec!["1".into()],
            chap: None,
            mutual: None,
            initiators: Vec::new(),
            is_open_to_all,
            threads: 1,
        };
        let shown = [Shown { name: "data01".into(), bytes: 1 << 20 }];
        let loops = Loops::start(1, || {}).unwrap();
        serve(&plan, &shown, members, Arc::new(assay_disk_server::Memory::zeroes(1 << 20)), loops).unwrap()
    }

    fn up(disks: &Disks) -> Vec<bool> {
        (0..disks.paths()).map(|portal| disks.server.is_open(portal)).collect()
    }

    #[test]
    fn portals_belong_to_members_in_turn_and_are_lost_and_mended_with_theirs() {
        let disks = disks(true, 2, false);
        disks.fail_member(0);
        assert_eq!(up(&disks), [false, true, false]);
        disks.mend_member(0);
        assert_eq!(up(&disks), [true; 3]);
    }

    #[test]
    fn a_cable_that_was_pulled_stays_out_when_another_controller_takes_over() {
        let disks = disks(true, 2, false);
        assert!(disks.fail_path().is_some());
        disks.fail_member(0);
        assert_eq!(up(&disks), [false, true, false]);
        disks.mend_member(0);
        assert_eq!(up(&disks), [false, true, true]);
        disks.fail_member(0);
        assert!(disks.mend_paths());
        assert!(disks.fail_path().is_some());
        disks.mend_member(0);
        assert_eq!(up(&disks), [false, true, true]);
    }

    #[test]
    fn a_member_that_joins_brings_its_portal_and_one_that_is_refused_brings_none() {
        let disks = disks(true, 1, false);
        disks.reserve_portal("127.0.0.1:0".parse().unwrap()).unwrap();
        disks.release_portal();
        assert_eq!((disks.join_portal(1), disks.paths()), (None, 3));
        disks.reserve_portal("127.0.0.1:0".parse().unwrap()).unwrap();
        let (name, asked) = disks.join_portal(1).unwrap();
        assert_eq!((name, asked, disks.paths()), (disks.named(3), 0, 4));
        disks.fail_member(0);
        assert_eq!(up(&disks), [false, false, false, true]);
    }

    #[test]
    fn a_portal_that_other_hosts_reach_or_that_no_group_sends_logins_to_is_refused() {
        let refused =
            |disks: &Disks, address: &str| disks.reserve_portal(address.parse().unwrap()).unwrap_err().to_string();
        assert!(refused(&disks(false, 1, false), "127.0.0.1:0").contains("no group could send logins"));
        assert!(refused(&disks(true, 1, false), "192.0.2.1:3260").contains("other hosts reach this address"));
        // No process can listen at an address that this host does not have.
        assert!(refused(&disks(true, 1, true), "192.0.2.1:3260").contains("cannot listen"));
    }

    #[test]
    fn the_last_open_portal_is_not_retired_and_mending_brings_all_back() {
        let disks = disks(true, 1, false);
        assert!(disks.retire_path(0).is_some() && disks.retire_path(1).is_some());
        assert_eq!((disks.retire_path(2), disks.retire_path(7)), (None, None));
        assert_eq!(up(&disks), [false, false, true]);
        assert!(disks.mend_paths());
        assert_eq!(up(&disks), [true; 3]);
    }
}
