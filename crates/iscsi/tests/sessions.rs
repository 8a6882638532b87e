//! A server over real sockets, and an initiator that says what it likes.

mod initiator;

use std::io::{Read, Write};

use assay_iscsi::{Access, Secret};
use initiator::{Initiator, TARGET, open, serve, ten};

#[test]
fn what_is_written_comes_back_whether_it_came_with_the_command_or_was_asked_for() {
    let (server, _) = open();
    let mut one = Initiator::log_in(server.addresses()[0], &["MaxBurstLength=65536", "InitialR2T=Yes"]).awake();
    let data: Vec<u8> = (0..200 * 512).map(|at| (at % 251) as u8).collect();
    // The first 8 KiB come with the command, the rest in the parts that the target asks for.
    let tag = one.command(0xa0, &ten(0x2a, 8, 200), data.len() as u32, &data[..8192]);
    loop {
        let unit = one.take().unwrap();
        if unit.opcode() == 0x21 {
            assert_eq!((unit.header[3], unit.u32(44)), (0, 0));
            break;
        }
        assert_eq!(unit.opcode(), 0x31);
        let (at, bytes) = (unit.u32(40) as usize, unit.u32(44) as usize);
        let half = at + bytes / 2;
        one.data_out(tag, unit.u32(20), 0, at as u32, &data[at..half], false);
        one.data_out(tag, unit.u32(20), 1, half as u32, &data[half..at + bytes], true);
    }
    one.command(0xc0, &ten(0x28, 8, 200), data.len() as u32, &[]);
    let mut found: Vec<u8> = Vec::new();
    loop {
        let unit = one.take().unwrap();
        assert_eq!((unit.opcode(), unit.u32(40) as usize), (0x25, found.len()));
        found.extend(&unit.data);
        if unit.header[1] & 1 != 0 {
            break;
        }
    }
    assert_eq!(found, data);
}

#[test]
fn data_out_of_order_end_the_command_and_not_the_session() {
    let (server, memory) = open();
    let mut one = Initiator::log_in(server.addresses()[0], &[]).awake();
    let tag = one.command(0xa0, &ten(0x2a, 0, 2), 1024, &[]);
    let ready = one.take().unwrap();
    one.data_out(tag, ready.u32(20), 7, 0, &[1; 1024], true);
    let answer = one.take().unwrap();
    assert_eq!((answer.opcode(), answer.header[3], answer.data[4]), (0x21, 2, 0x0b));
    one.command(0x80, &[0; 6], 0, &[]);
    assert_eq!(one.take().unwrap().header[3], 0);
    assert!(memory.0.lock().unwrap().iter().all(|byte| *byte == 0));
}

#[test]
fn commands_without_the_data_that_they_need_fail_and_write_nothing() {
    let (server, memory) = open();
    let mut one = Initiator::log_in(server.addresses()[0], &[]).awake();
    let mut compare = [0; 16];
    (compare[0], compare[13]) = (0x89, 1);
    // The initiator says that it reads where the command writes, or sends nothing.
    for (flags, cdb) in [(0xc0, &compare[..]), (0x80, &compare), (0xc0, &ten(0x41, 0, 4)), (0xc0, &ten(0x42, 0, 24))] {
        one.command(flags, cdb, 1024, &[]);
        let answer = one.take().unwrap();
        assert_eq!((answer.opcode(), answer.header[3], answer.data[4]), (0x21, 2, 5), "{cdb:x?}");
    }
    one.command(0x80, &[0; 6], 0, &[]);
    assert_eq!(one.take().unwrap().header[3], 0);
    assert!(memory.0.lock().unwrap().iter().all(|byte| *byte == 0));
}

#[test]
fn no_command_is_taken_before_a_login_and_none_after_a_wrong_proof() {
    let (server, _) = open();
    let mut one = Initiator::connect(server.addresses()[0]);
    one.command(0xc0, &ten(0x28, 0, 1), 512, &[]);
    assert!(one.take().is_none());

    let chap = Some(Secret { name: "dba".into(), secret: b"a secret of some length".to_vec() });
    let (server, _) = serve(Access { chap, ..Access::default() }, 1, false);
    let mut one = Initiator::connect(server.addresses()[0]);
    let target = format!("TargetName={TARGET}");
    let names = ["InitiatorName=iqn.2026-11.test:one", &target, "AuthMethod=CHAP"];
    assert_eq!(one.ask_to_log_in(0x00, &names).header[36], 0);
    assert_eq!(one.ask_to_log_in(0x00, &["CHAP_A=5"]).header[36], 0);
    let answer = one.ask_to_log_in(0x81, &["CHAP_N=dba", "CHAP_R=0x00112233445566778899aabbccddeeff"]);
    assert_eq!(answer.header[36..38], [2, 1]);
    assert!(one.take().is_none());
}

#[test]
fn a_group_sends_logins_to_portals_that_are_there() {
    let (server, _) = serve(Access::default(), 2, true);
    let addresses = server.addresses().to_vec();
    let sent_to = || {
        let answer = Initiator::connect(addresses[2]).names_itself(&[]);
        assert_eq!(answer.header[36..38], [1, 1]);
        initiator::sent_to(&answer)
    };
    server.set_portal(0, false);
    assert_eq!(sent_to(), addresses[1]);
    server.set_portal(0, true);
    server.set_portal(1, false);
    assert_eq!(sent_to(), addresses[0]);
    server.set_portal(0, false);
    let answer = Initiator::connect(addresses[2]).names_itself(&[]);
    assert_eq!(answer.header[36..38], [3, 1], "no portal takes sessions");
}

#[test]
fn a_lost_portal_ends_its_sessions_and_takes_no_new_ones() {
    let (server, _) = serve(Access::default(), 2, false);
    let mut one = Initiator::log_in(server.addresses()[0], &[]).awake();
    server.set_portal(0, false);
    assert!(one.take().is_none());
    let mut late = Initiator::connect(server.addresses()[0]);
    let mut byte = [0];
    assert_eq!(late.stream.read(&mut byte).unwrap_or(0), 0);
    Initiator::log_in(server.addresses()[1], &[]);
    server.set_portal(0, true);
    Initiator::log_in(server.addresses()[0], &[]);
}

#[test]
fn a_second_login_of_the_same_session_takes_the_place_of_the_first() {
    let (server, _) = open();
    let mut first = Initiator::log_in(server.addresses()[0], &[]).awake();
    let mut second = Initiator::log_in(server.addresses()[0], &[]).awake();
    assert!(first.take().is_none());
    second.command(0x80, &[0; 6], 0, &[]);
    assert_eq!(second.take().unwrap().header[3], 0);
    assert_eq!(server.sessions().len(), 1);
}

#[test]
fn units_that_are_none_end_their_connection_alone() {
    let (server, _) = open();
    let mut good = Initiator::log_in(server.addresses()[0], &[]).awake();
    let mut seed = 7u64;
    for _ in 0..300 {
        let mut bad = Initiator::connect(server.addresses()[0]);
        let mut bytes = [0; 96];
        for byte in &mut bytes {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte = (seed >> 33) as u8;
        }
        let _ = bad.stream.write_all(&bytes);
        let _ = bad.stream.shutdown(std::net::Shutdown::Write);
    }
    good.command(0xc0, &ten(0x28, 0, 1), 512, &[]);
    assert_eq!(good.take().unwrap().data.len(), 512);
}

#[test]
fn units_of_any_bytes_within_a_session_end_no_other_session() {
    let (server, _) = open();
    let mut seed = 11u64;
    let mut draw = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as u8
    };
    for round in 0..200 {
        let mut bad = Initiator::log_in(server.addresses()[0], &[]);
        for _ in 0..4 {
            let mut header: [u8; 48] = std::array::from_fn(|_| draw());
            // Short units of known kinds reach further than random lengths would.
            header[0] = [0x00, 0x01, 0x02, 0x04, 0x05, 0x06, 0x10, 0x41][round % 8];
            header[4] = 0;
            header[24..28].copy_from_slice(&bad.command_number.to_be_bytes());
            bad.command_number += 1;
            let data: Vec<u8> = (0..draw() % 64).map(|_| draw()).collect();
            bad.send(header, &data);
        }
    }
    let mut good = Initiator::log_in(server.addresses()[0], &[]).awake();
    good.command(0x80, &[0; 6], 0, &[]);
    assert_eq!(good.take().unwrap().header[3], 0);
}
