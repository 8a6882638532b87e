//! Initiators that mean harm, or die: others go on, no byte is lost, memory is bounded, and one line says what was wrong.

mod initiator;

use std::{
    collections::BTreeSet,
    io::Write,
    net::SocketAddr,
    sync::{Arc, Mutex, mpsc},
    time::{Duration, Instant},
};

use assay_disk_server::{Answer, Blocks, Loops, Memory, Op};
use assay_iscsi::{Access, Config, Disk, Secret, Server};
use initiator::{DISK_BYTES, Initiator, TARGET, Unit, open, serve, ten};

/// Bytes of reads that one session may hold.
const SESSION_MOST_BYTES: u64 = 128 << 20;

/// Waits for what another thread does soon.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::yield_now();
    }
}

/// A disk in memory that hands on the lines about initiators.
struct Noting(Memory, Mutex<mpsc::Sender<String>>);

impl Blocks for Noting {
    fn begin(&self, volume: u16, op: Op, at_bytes: u64, bytes: u32, answer: Answer) {
        self.0.begin(volume, op, at_bytes, bytes, answer);
    }

    fn note(&self, line: String) {
        let _ = self.1.lock().unwrap().send(line);
    }
}

fn noting(access: Access, disk_bytes: u64) -> (Server, SocketAddr, mpsc::Receiver<String>) {
    let disk =
        Disk { target: TARGET.into(), volume: 0, bytes: disk_bytes, serial: "1".into(), product: "MEMORY".into() };
    let portals = vec!["127.0.0.1:0".parse().unwrap()];
    let (tell, told) = mpsc::channel();
    let blocks = Arc::new(Noting(Memory::zeroes(disk_bytes), Mutex::new(tell)));
    let config = Config { disks: vec![disk], portals, group: None, access };
    let server = Server::start(config, blocks, Loops::start(1, || {}).unwrap()).unwrap();
    let address = server.addresses()[0];
    (server, address, told)
}

#[test]
fn each_way_to_be_refused_is_told_in_one_line_however_often_it_is_tried() {
    let chap = Some(Secret { name: "dba".into(), secret: b"a secret of some length".to_vec() });
    let access = Access { chap, mutual: None, initiators: vec!["iqn.2026-11.test:one".into()] };
    let (_server, address, told) = noting(access, DISK_BYTES);
    for _ in 0..20 {
        assert_eq!(Initiator::connect(address).names_itself(&[]).header[36..38], [2, 1]);
        assert_eq!(Initiator::named(address, "other", 1).names_itself(&[]).header[36..38], [2, 2]);
        let absent = ["InitiatorName=iqn.2026-11.test:one", "TargetName=iqn.2026-11.test:none"];
        assert_eq!(Initiator::connect(address).ask_to_log_in(0x87, &absent).header[36..38], [2, 3]);
        Initiator::connect(address).command(0x80, &[0; 6], 0, &[]);
    }
    let lines: BTreeSet<String> = (0..4).map(|_| told.recv_timeout(Duration::from_secs(60)).unwrap()).collect();
    let wanted = [
        "iSCSI: 127.0.0.1: its connection was ended: there is no login before it",
        "iSCSI: 127.0.0.1: refused: it asks for a disk that there is not",
        "iSCSI: 127.0.0.1: refused: it does not prove the secret of CHAP",
        "iSCSI: 127.0.0.1: refused: it is not on the list of initiators",
    ];
    assert_eq!(lines, wanted.map(str::to_owned).into());
    assert!(told.try_recv().is_err());
}

#[test]
fn a_thousand_connections_are_borne_and_those_beyond_are_told_that_there_are_too_many() {
    let (_server, address, told) = noting(Access::default(), DISK_BYTES);
    // This process has both ends of each connection.
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is this function's own.
    let done = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    limit.rlim_cur = limit.rlim_max.min(8192);
    // SAFETY: the structure is this function's own.
    assert_eq!((done, unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }), (0, 0));
    let mut good = Initiator::log_in(address, &[]).awake();
    let many: Vec<Initiator> = (0..1023).map(|_| Initiator::connect(address)).collect();
    let answer = Initiator::connect(address).names_itself(&[]);
    assert_eq!(answer.header[36..38], [3, 2]);
    let line = told.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(line, "iSCSI: 127.0.0.1: refused: there are as many connections as there may be");
    good.command(0xc0, &ten(0x28, 0, 1), 512, &[]);
    assert_eq!(good.take().unwrap().data.len(), 512);
    drop(many);
    until("connections that have ended give their places back", || {
        Initiator::named(address, "late", 2).names_itself(&[]).header[36..38] == [0, 0]
    });
}

#[test]
fn initiators_that_take_no_answers_hold_bounded_memory_and_leave_others_theirs() {
    let (server, address, _told) = noting(Access::default(), 16 << 20);
    let mut slow = Initiator::named(address, "slow", 1);
    assert_eq!(slow.names_itself(&[]).header[36], 0);
    let mut slow = slow.awake();
    // 128 reads of 8 MiB, none of which is taken.
    for _ in 0..128 {
        slow.command(0xc0, &ten(0x28, 0, 16 << 10), 8 << 20, &[]);
    }
    until("the slow session holds what it may", || server.held_bytes() > SESSION_MOST_BYTES - (9 << 20));
    let mut good = Initiator::named(address, "good", 2);
    assert_eq!(good.names_itself(&[]).header[36], 0);
    let mut good = good.awake();
    for _ in 0..100 {
        good.command(0xc0, &ten(0x28, 0, 16), 8192, &[]);
        assert_eq!(good.take().unwrap().data.len(), 8192);
        assert!(server.held_bytes() <= SESSION_MOST_BYTES + 8192);
    }
    drop(slow);
    until("the memory is given back", || server.held_bytes() == 0);
}

#[test]
fn a_session_that_is_killed_in_any_phase_leaves_the_disk_and_the_others_alone() {
    let (server, memory) = open();
    let address = server.addresses()[0];
    memory.0.lock().unwrap().fill(9);
    let mut good = Initiator::named(address, "good", 7);
    assert_eq!(good.names_itself(&[]).header[36], 0);
    let mut good = good.awake();
    let session = || {
        let mut one = Initiator::named(address, "dies", 1);
        assert_eq!(one.names_itself(&["InitialR2T=No"]).header[36], 0);
        one.awake()
    };
    for _ in 0..20 {
        // Half of a login, and a login that goes on.
        let _ = Initiator::connect(address).stream.write_all(&[0x43; 20]);
        Initiator::connect(address)
            .ask_to_log_in(0x00, &["InitiatorName=iqn.2026-11.test:dies", "SessionType=Discovery"]);
        // A read whose answer is not taken, and half of a command.
        session().command(0xc0, &ten(0x28, 0, 4096), 2 << 20, &[]);
        let _ = session().stream.write_all(&[0x01; 30]);
        // A write of which nothing, or a half, comes after it was asked for.
        let mut asked = session();
        let tag = asked.command(0xa0, &ten(0x2a, 0, 16), 8192, &[]);
        let ready: Unit = asked.take().unwrap();
        asked.data_out(tag, ready.u32(20), 0, 0, &[1; 4096], false);
        // A write of which a half comes by itself.
        session().command(0x20, &ten(0x2a, 0, 16), 8192, &[1; 4096]);
        good.command(0xc0, &ten(0x28, 0, 16), 8192, &[]);
        assert_eq!(good.take().unwrap().data, [9; 8192]);
    }
    until("dead sessions end", || server.sessions().len() == 1);
    until("their memory is given back", || server.held_bytes() == 0);
    assert!(memory.0.lock().unwrap().iter().all(|byte| *byte == 9), "no write without all of its data was done");
}

#[test]
fn writes_of_two_initiators_lie_whole_one_after_the_other_and_a_reservation_keeps_one_out() {
    let (server, memory) = open();
    let address = server.addresses()[0];
    let session = |name: &'static str, number| {
        let mut one = Initiator::named(address, name, number);
        assert_eq!(one.names_itself(&[]).header[36], 0);
        one.awake()
    };
    let writing = |name: &'static str, number: u8| {
        let mut one = session(name, number);
        std::thread::spawn(move || {
            for at in 0..400 {
                one.command(0xa0, &ten(0x2a, at % 8 * 16, 16), 8192, &[number; 8192]);
                let answer = one.take().unwrap();
                assert_eq!((answer.opcode(), answer.header[3]), (0x21, 0));
            }
            one
        })
    };
    let (one, other) = (writing("one", 1), writing("other", 2));
    let (mut one, mut other) = (one.join().unwrap(), other.join().unwrap());
    for block in memory.0.lock().unwrap()[..64 << 10].chunks(8192) {
        assert!(block.iter().all(|byte| *byte == block[0]) && matches!(block[0], 1 | 2), "writes lie whole");
    }

    // The first registers and reserves for itself (exclusive access, registrants none).
    let mut list = [0; 24];
    list[15] = 5;
    one.command(0xa0, &[0x5f, 0, 0, 0, 0, 0, 0, 0, 24, 0], 24, &list);
    assert_eq!(one.take().unwrap().header[3], 0);
    let mut list = [0; 24];
    list[7] = 5;
    one.command(0xa0, &[0x5f, 1, 1, 0, 0, 0, 0, 0, 24, 0], 24, &list);
    assert_eq!(one.take().unwrap().header[3], 0);
    one.command(0xa0, &ten(0x2a, 0, 16), 8192, &[3; 8192]);
    assert_eq!(one.take().unwrap().header[3], 0);
    other.command(0xa0, &ten(0x2a, 0, 16), 8192, &[4; 8192]);
    assert_eq!(other.take().unwrap().header[3], 0x18, "the disk is reserved");
    assert!(memory.0.lock().unwrap()[..8192].iter().all(|byte| *byte == 3));
}

#[test]
fn a_group_whose_portals_are_all_lost_asks_for_patience() {
    let (server, _) = serve(Access::default(), 1, true);
    let group = server.addresses()[1];
    server.set_portal(0, false);
    assert_eq!(Initiator::connect(group).names_itself(&[]).header[36..38], [3, 1]);
    server.set_portal(0, true);
    drop(Initiator::through(group, "patient", 1));
}
