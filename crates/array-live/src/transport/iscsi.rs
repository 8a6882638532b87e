//! Volumes as disks of iSCSI: initiators of any host log in at portals.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use assay_iscsi::{Access, Blocks, Config, Disk, Op, Secret, Server};

use crate::{
    ServeError,
    inbox::{Inbox, Message},
    io::{Answer, Io, IoKind, Shown},
    plan::IscsiPlan,
    transport::Transport,
};

/// The array's thread, as the server of disks sees it.
struct Volumes(Arc<Inbox>);

/// Takes the end of an I/O to the session that waits for it.
struct Reply(assay_iscsi::Answer);

impl Answer for Reply {
    fn answer(self: Box<Self>, result: Result<&[u8], i32>) {
        (self.0)(result);
    }
}

impl Blocks for Volumes {
    fn begin(&self, volume: u16, op: Op, at_bytes: u64, bytes: u32, answer: assay_iscsi::Answer) {
        let kind = match op {
            Op::Read => IoKind::Read,
            Op::Write { bytes, durable } => IoKind::Write { bytes, durable },
            Op::Modify(change) => IoKind::Modify(change),
            Op::Flush => IoKind::Flush,
            Op::Discard => IoKind::Discard,
        };
        let answer = Box::new(Reply(answer));
        let io = Io { kind, volume, offset_bytes: at_bytes, length_bytes: bytes, came: Instant::now(), answer };
        self.0.put(Message::Io(io));
    }
}

/// Disks that are served.
pub(crate) struct Disks {
    server: Server,
    portals: usize,
}

/// Serves volumes as disks.
///
/// # Errors
/// A portal cannot be listened at.
pub(crate) fn serve(plan: &IscsiPlan, shown: &[Shown], inbox: Arc<Inbox>) -> Result<Disks, ServeError> {
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
        threads: plan.threads,
    };
    let server = Server::start(config, Arc::new(Volumes(inbox)));
    let server = server.map_err(|error| ServeError::Refused(format!("iSCSI: {error}")))?;
    Ok(Disks { server, portals: plan.portals.len() })
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

    fn paths(&self) -> usize {
        self.portals
    }

    fn fail_path(&self) -> Option<String> {
        let portal = (0..self.portals).find(|portal| self.server.is_up(*portal))?;
        self.server.set_portal(portal, false);
        Some(self.server.addresses()[portal].to_string())
    }

    fn mend_paths(&self) -> bool {
        let lost: Vec<usize> = (0..self.portals).filter(|portal| !self.server.is_up(*portal)).collect();
        lost.iter().for_each(|portal| self.server.set_portal(*portal, true));
        !lost.is_empty()
    }

    fn delay_path(&self, path: usize, delay: Duration) -> bool {
        if path >= self.portals {
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
