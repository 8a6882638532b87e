//! A served array, from its start until everything is taken away.

use std::{
    fs::File,
    sync::{Arc, mpsc},
    thread::JoinHandle,
};

use assay_array_model::ModelPlan;
use assay_disk_server::{Blocks, Loops};
use serde_json::Value;

use crate::{
    ServeError,
    array::Array,
    cloud::Cloud,
    command::Command,
    control,
    floor::{FloorNs, Gauge},
    group::Group,
    host_flash::HostFlash,
    inbox::{Closing, Inbox, Message},
    io::Shown,
    plan::ServePlan,
    scheduling,
    server::Server,
    transport::{
        disks::Volumes,
        fuse::mounted::mount,
        iscsi::{self, Disks},
        nbd::{self, Exports},
        ways::Ways,
    },
};

/// A served array.
pub struct Served {
    inbox: Arc<Inbox>,
    gauge: Option<Gauge>,
    /// Processors stay awake while it is open.
    _awake: Option<File>,
    thread: Option<JoinHandle<Result<(), ServeError>>>,
}

impl Served {
    /// Opens the store, shows the volumes and serves them in a thread.
    ///
    /// # Errors
    /// The array, the store, the mount or the socket is refused or fails.
    pub fn start(plan: &ServePlan) -> Result<Self, ServeError> {
        let store = plan.store_folder()?;
        let control = store.again()?;
        let array: Box<dyn Array> = match &plan.array {
            ModelPlan::Group(array) => Box::new(Group::open(plan, array, store)?),
            ModelPlan::HostFlash(array) => Box::new(HostFlash::open(plan, array, store)?),
            ModelPlan::Cloud(array) => Box::new(Cloud::open(plan, array, store)?),
        };
        let inbox = Arc::new(Inbox::default());
        // What was kept may have grown since it was made.
        let sized = |(volume, shown)| Shown { bytes: array.volume_bytes(volume), ..shown };
        let shown: Vec<Shown> = plan.shown().into_iter().enumerate().map(sized).collect();
        let transport = mount(&plan.folder, plan.folder_descriptor, shown.clone(), Arc::clone(&inbox), plan.realtime)?;
        let probe = transport.probe();
        let floor_ns = FloorNs::default();
        let (disks, exports) = network_disks(plan, &shown, array.members(), &inbox)?;
        let ways = Box::new(Ways { files: transport, disks, exports });
        let mut server = Server::new(plan, shown, array, ways, Arc::clone(&inbox), Arc::clone(&floor_ns));
        let (ready, is_ready) = mpsc::sync_channel(1);
        let realtime = plan.realtime;
        let closing = Closing(Arc::clone(&inbox));
        let run = move || {
            let _closing = closing;
            server.scheduling = scheduling::hasten(realtime);
            let _ = ready.send(());
            server.run()
        };
        let thread = std::thread::Builder::new().name("assay-array".into()).spawn(run);
        let thread = thread.map_err(|error| ServeError::host("a thread", error))?;
        let awake = realtime.then(scheduling::stay_awake).flatten();
        let mut served = Self { inbox, gauge: None, _awake: awake, thread: Some(thread) };
        let _ = is_ready.recv();
        let (gauge, per_s) = Gauge::start(&probe, &floor_ns)?;
        served.gauge = Some(gauge);
        served.inbox.put(Message::Most(per_s));
        control::listen(&control, Arc::clone(&served.inbox))?;
        Ok(served)
    }

    /// Has a command carried out.
    ///
    /// # Errors
    /// It is refused, with the reason.
    pub fn ask(&self, command: Command) -> Result<Value, ServeError> {
        control::ask(&self.inbox, command).map_err(ServeError::Refused)
    }

    /// Whether the thread is still at work.
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Takes the volumes away and closes the store.
    ///
    /// # Errors
    /// The mount or the store fails.
    pub fn stop(&mut self) -> Result<(), ServeError> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        drop(self.gauge.take());
        self.inbox.put(Message::Stop);
        thread.join().unwrap_or_else(|_| Err(ServeError::refused("the array's thread ended by a fault of Assay's")))
    }
}

/// Serves the volumes over the network as the plan says: as disks of iSCSI, as exports of NBD, or not.
fn network_disks(
    plan: &ServePlan,
    shown: &[Shown],
    members: usize,
    inbox: &Arc<Inbox>,
) -> Result<(Option<Disks>, Option<Exports>), ServeError> {
    let threads = plan.iscsi.iter().map(|own| own.threads).chain(plan.nbd.iter().map(|own| own.threads));
    let Some(threads) = threads.max() else { return Ok((None, None)) };
    let realtime = plan.realtime;
    let hastened = move || {
        scheduling::hasten(realtime);
    };
    let loops = Loops::start(threads, hastened).map_err(|error| ServeError::Refused(error.to_string()))?;
    let volumes: Arc<dyn Blocks> = Arc::new(Volumes(Arc::clone(inbox)));
    let disks = |own| iscsi::serve(own, shown, members, Arc::clone(&volumes), Arc::clone(&loops));
    let disks = plan.iscsi.as_ref().map(disks).transpose()?;
    let exports = |own| nbd::serve(own, shown, Arc::clone(&volumes), Arc::clone(&loops));
    Ok((disks, plan.nbd.as_ref().map(exports).transpose()?))
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}
