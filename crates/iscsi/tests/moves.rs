//! Portals that come and go beneath sessions: initiators are asked to log in elsewhere, and no command of theirs fails.

mod initiator;

use assay_disk_server::Listener;
use assay_iscsi::{Access, Server};
use initiator::{Initiator, serve, ten};

fn group(portals: usize) -> (Server, std::net::SocketAddr) {
    let (server, _) = serve(Access::default(), portals, true);
    let group = *server.addresses().last().unwrap();
    (server, group)
}

fn ports(sessions: &[Initiator]) -> Vec<u16> {
    let mut ports: Vec<u16> = sessions.iter().map(Initiator::port).collect();
    ports.sort_unstable();
    ports
}

#[test]
fn sessions_move_to_a_portal_that_comes_until_all_have_equally_many() {
    let (server, group) = group(1);
    let mut sessions: Vec<Initiator> =
        (0..4).map(|number| Initiator::through(group, &format!("host{number}"), 1)).collect();
    let number = server.add_portal(Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap());
    let (first, added) = (server.addresses()[0].port(), server.addresses()[number].port());
    assert_eq!(server.balance(), 2);
    let moved: Vec<Initiator> = sessions.split_off(2).into_iter().map(|one| one.moves(group)).collect();
    sessions.extend(moved);
    let mut wanted = [first, first, added, added];
    wanted.sort_unstable();
    assert_eq!(ports(&sessions), wanted);
    assert_eq!(server.balance(), 0, "all portals have equally many");
    for one in &mut sessions {
        one.command(0xc0, &ten(0x28, 0, 1), 512, &[]);
        assert_eq!(one.take().unwrap().data.len(), 512);
    }
}

#[test]
fn a_command_that_was_under_way_is_answered_before_the_session_leaves() {
    let (server, group) = group(2);
    let mut one = Initiator::through(group, "host", 1);
    let own = server.addresses().iter().position(|address| address.port() == one.port()).unwrap();
    let tag = one.command(0xa0, &ten(0x2a, 0, 2), 1024, &[]);
    let ready = one.take().unwrap();
    assert_eq!(server.retire_portal(own), 1);
    assert_eq!(one.take().unwrap().opcode(), 0x32);
    one.data_out(tag, ready.u32(20), 0, 0, &[7; 1024], true);
    let answer = one.take().unwrap();
    assert_eq!((answer.opcode(), answer.header[3]), (0x21, 0));
    one.log_out();
    let mut again = Initiator::through(group, "host", 1);
    assert_ne!(again.port(), server.addresses()[own].port());
    again.command(0xc0, &ten(0x28, 0, 2), 1024, &[]);
    assert_eq!(again.take().unwrap().data, [7; 1024]);
}

#[test]
fn a_portal_that_is_given_up_sends_logins_to_the_others_until_it_is_brought_back() {
    let (server, group) = group(2);
    server.retire_portal(0);
    let (first, second) = (server.addresses()[0], server.addresses()[1]);
    let answer = Initiator::connect(first).names_itself(&[]);
    assert_eq!((&answer.header[36..38], initiator::sent_to(&answer)), (&[1, 1][..], second));
    assert_eq!(Initiator::through(group, "host", 1).port(), second.port());
    server.set_portal(0, true);
    assert_eq!(Initiator::connect(first).names_itself(&[]).header[36], 0);
}

#[test]
fn two_paths_of_one_initiator_never_move_onto_one_portal() {
    let (server, group) = group(2);
    let paths = [Initiator::through(group, "host", 1), Initiator::through(group, "host", 2)];
    assert_ne!(paths[0].port(), paths[1].port());
    server.add_portal(Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap());
    assert_eq!(server.balance(), 0, "two sessions on three portals are balanced");
    let _third = Initiator::through(group, "host", 3);
    let used: std::collections::BTreeSet<usize> = server.sessions().iter().map(|session| session.portal).collect();
    assert_eq!(used.len(), 3);
}

#[test]
fn answers_through_a_slow_portal_come_later_and_those_of_others_do_not_wait_for_them() {
    let (server, group) = group(2);
    let mut slow = Initiator::through(group, "slow", 1);
    let mut other = Initiator::through(group, "other", 1);
    let own = server.addresses().iter().position(|address| address.port() == slow.port()).unwrap();
    let delay = std::time::Duration::from_millis(300);
    server.delay_portal(own, delay);
    let begun = std::time::Instant::now();
    slow.command(0xc0, &ten(0x28, 0, 1), 512, &[]);
    for _ in 0..10 {
        other.command(0xc0, &ten(0x28, 0, 1), 512, &[]);
        assert_eq!(other.take().unwrap().data.len(), 512);
    }
    assert_eq!(slow.take().unwrap().data.len(), 512);
    assert!(begun.elapsed() >= delay);
    server.delay_portal(own, std::time::Duration::ZERO);
    slow.command(0xc0, &ten(0x28, 0, 1), 512, &[]);
    assert_eq!(slow.take().unwrap().data.len(), 512);
}
