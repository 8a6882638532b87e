//! Volumes as exports of NBD: guests of QEMU, kernels with nbd-client and programs with libnbd connect to them.
//!
//! They stand beside the files: the model keeps its own paths, which are lost and slow for exports as for files.

use std::sync::Arc;

use assay_disk_server::{Blocks, Loops};
use assay_nbd::{Config, Export, Server};

use crate::{ServeError, io::Shown, plan::NbdPlan, transport::Transport};

/// Exports that are served.
pub(crate) struct Exports(Server);

/// Serves volumes as exports of their names.
///
/// # Errors
/// The address cannot be listened at.
pub(crate) fn serve(
    plan: &NbdPlan,
    shown: &[Shown],
    volumes: Arc<dyn Blocks>,
    loops: Arc<Loops>,
) -> Result<Exports, ServeError> {
    let export = |(number, shown): (usize, &Shown)| Export {
        name: shown.name.clone(),
        volume: number as u16,
        bytes: shown.bytes,
    };
    let config = Config { exports: shown.iter().enumerate().map(export).collect(), addresses: vec![plan.address] };
    let server = Server::start(config, volumes, loops);
    server.map(Exports).map_err(|error| ServeError::Refused(format!("NBD: {error}")))
}

impl Transport for Exports {
    fn forget_cached(&self) {
        // What clients keep is theirs: the protocol has no word for it.
    }

    fn in_use(&self) -> Vec<usize> {
        self.0.in_use()
    }

    fn grow(&self, volume: usize, bytes: u64) {
        self.0.grow(volume, bytes);
    }

    fn stop(self: Box<Self>) -> Result<(), ServeError> {
        let Self(mut server) = *self;
        server.stop();
        Ok(())
    }
}
