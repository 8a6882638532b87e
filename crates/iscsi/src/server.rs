//! The server: portals that listen, and commands to them.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use assay_disk_server::{Blocks, Front, Listener, Loops, StartError};
use tokio::net::TcpStream;

use crate::{
    config::Config,
    connection,
    portals::{Portal, Portals},
    shared::{SessionReading, Shared},
};

/// An iSCSI server.
pub struct Server {
    shared: Arc<Shared>,
    loops: Arc<Loops>,
}

impl Front for Shared {
    type Door = Arc<Portal>;

    fn is_open(&self, portal: &Arc<Portal>) -> bool {
        portal.is_up()
    }

    fn serve(
        self: Arc<Self>,
        stream: TcpStream,
        portal: Arc<Portal>,
        is_too_many: bool,
    ) -> impl Future<Output = ()> + 'static {
        connection::serve(self, stream, portal, is_too_many)
    }
}

impl Server {
    /// Listens at all portals and serves in event loops.
    ///
    /// # Errors
    /// An address cannot be listened at.
    pub fn start(config: Config, blocks: Arc<dyn Blocks>, loops: Arc<Loops>) -> Result<Self, StartError> {
        let listeners: Vec<Listener> =
            config.portals.iter().map(|one| Listener::bind(*one)).collect::<Result<_, _>>()?;
        let group = config.group.map(Listener::bind).transpose()?;
        let addresses: Vec<SocketAddr> = listeners.iter().map(Listener::address).collect();
        let portals = Portals::new(&addresses, group.as_ref().map(Listener::address));
        let own: Vec<Arc<Portal>> = portals.list().into_iter().chain(portals.group().cloned()).collect();
        let shared = Arc::new(Shared::new(config, blocks, portals, &loops));
        for (listener, portal) in listeners.into_iter().chain(group).zip(own) {
            loops.listen(listener, Arc::clone(&shared), portal);
        }
        Ok(Self { shared, loops })
    }

    /// Where portals listen, the group's last.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let list = self.shared.portals.list();
        list.iter().chain(self.shared.portals.group()).map(|portal| portal.address).collect()
    }

    /// Adds a portal, which takes sessions from then on; gives its number.
    pub fn add_portal(&self, listener: Listener) -> usize {
        let portal = self.shared.portals.add(listener.address());
        let number = portal.number.expect("the group's address alone has none");
        self.loops.listen(listener, Arc::clone(&self.shared), portal);
        number
    }

    /// Takes a portal away with its sessions, or brings it back.
    pub fn set_portal(&self, portal: usize, is_up: bool) {
        self.shared.set_portal(portal, is_up);
    }

    /// Whether a portal is there.
    #[must_use]
    pub fn is_up(&self, portal: usize) -> bool {
        self.shared.portals.get(portal).is_some_and(|portal| portal.is_up())
    }

    /// Whether a portal takes new sessions.
    #[must_use]
    pub fn is_open(&self, portal: usize) -> bool {
        self.shared.portals.get(portal).is_some_and(|portal| portal.is_open())
    }

    /// Tells all initiators that the content of their disks has changed beneath them.
    pub fn medium_changed(&self) {
        self.shared.units.iter().for_each(|unit| unit.medium_changed());
    }

    /// Makes every answer of a portal later.
    pub fn delay_portal(&self, portal: usize, delay: Duration) {
        if let Some(portal) = self.shared.portals.get(portal) {
            portal.set_delay(delay);
        }
    }

    /// Asks the sessions of a portal to log in at the others, and sends new ones there; gives their count.
    ///
    /// Sessions that are still there after ten seconds are ended.
    pub fn retire_portal(&self, portal: usize) -> usize {
        self.shared.retire(portal)
    }

    /// Asks sessions to log out and in again until all portals have equally many; gives their count.
    pub fn balance(&self) -> usize {
        self.shared.balance()
    }

    /// A disk has grown.
    pub fn grow(&self, disk: usize, bytes: u64) {
        if let Some(unit) = self.shared.units.get(disk) {
            unit.grow(bytes);
        }
    }

    /// Sessions that there are now.
    #[must_use]
    pub fn sessions(&self) -> Vec<SessionReading> {
        self.shared.readings()
    }

    /// Bytes that commands under way hold, all sessions together.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.shared.budget.held_bytes()
    }

    /// Ends all sessions, and the event loops.
    pub fn stop(&mut self) {
        self.loops.stop();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}
