//! A connection: units are read from a socket and written to it.

use std::{cell::RefCell, io::IoSlice, net::IpAddr, rc::Rc, sync::Arc, time::Duration};

use assay_disk_server::{ANSWERS_AT_ONCE, Done, GREETING_MOST, READ_BUFFER_BYTES, TAKE_MOST, Taken, broken, write_all};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, BufReader},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{Notify, mpsc},
};

use crate::{
    negotiation::{End, Negotiation},
    session::{Reply, Session},
    shared::Shared,
    wire::{
        FIXED_NEWSTYLE, GREETING, HANDSHAKE_FLAGS, NO_ZEROES, OPTION, PAYLOAD_MOST_BYTES, REQUEST_BYTES, Request,
        command, option_of,
    },
};

/// Most data of one option. A name has 4 KiB at most.
const OPTION_MOST_BYTES: u32 = 16 << 10;
/// Time after which memory that other connections held is asked for again.
const ASK_AGAIN: Duration = Duration::from_millis(10);

type Input = BufReader<OwnedReadHalf>;
/// Why a connection ended: the client went, was idle, or broke the protocol.
type Ended = std::io::Result<()>;

/// State that the two halves of a connection share.
struct Halves {
    session: RefCell<Session>,
    /// Something waits to leave.
    leaves: Notify,
    /// Less is under way, or waits to leave.
    left: Notify,
}

/// Serves a connection until it ends; one of too many is closed.
pub(crate) async fn serve(shared: Arc<Shared>, stream: TcpStream, is_too_many: bool) {
    let _ = stream.set_nodelay(true);
    let Ok(peer) = stream.peer_addr() else { return };
    if is_too_many {
        return shared.notes.note(peer.ip(), ": refused: there are as many connections as there may be");
    }
    let (from, mut to) = stream.into_split();
    let mut input = BufReader::with_capacity(READ_BUFFER_BYTES, from);
    let greeted = tokio::time::timeout(GREETING_MOST, negotiate(&shared, &mut input, &mut to)).await;
    let ended = match greeted {
        Ok(Ok((negotiation, End::Export(export)))) => {
            transmit(Arc::clone(&shared), export, negotiation.is_structured, &mut input, &mut to).await
        }
        Ok(Ok((_, End::Over))) => Ok(()),
        Ok(Ok((_, End::NoExport))) => return note_no_export(&shared, peer.ip()),
        Ok(Err(error)) => Err(error),
        Err(_) => return shared.notes.note(peer.ip(), ": its negotiation was not over in time"),
    };
    let _ = to.shutdown().await;
    if let Err(error) = ended {
        shared.notes.ended(peer.ip(), None, &error);
    }
}

fn note_no_export(shared: &Shared, from: IpAddr) {
    shared.notes.note(from, ": refused: it asks for an export that there is not");
}

/// Goes through the options of a client; gives how that ends.
async fn negotiate(shared: &Shared, input: &mut Input, to: &mut OwnedWriteHalf) -> std::io::Result<(Negotiation, End)> {
    let mut greeting = [GREETING, OPTION].map(u64::to_be_bytes).concat();
    greeting.extend(HANDSHAKE_FLAGS.to_be_bytes());
    to.write_all(&greeting).await?;
    let flags = input.read_u32().await?;
    if flags & !u32::from(FIXED_NEWSTYLE | NO_ZEROES) != 0 {
        return Err(broken("it sets flags that there are not"));
    }
    let has_zeroes = flags & u32::from(NO_ZEROES) == 0;
    let mut negotiation = Negotiation { has_zeroes, is_structured: false };
    loop {
        let mut header = [0; 16];
        input.read_exact(&mut header).await?;
        let (option, length) = option_of(&header).ok_or_else(|| broken("an option does not begin as one"))?;
        if length > OPTION_MOST_BYTES {
            return Err(broken("an option is longer than 16 KiB"));
        }
        let mut data = vec![0; length as usize];
        input.read_exact(&mut data).await?;
        let (answer, end) = negotiation.step(shared, option, &data);
        to.write_all(&answer).await?;
        if let Some(end) = end {
            return Ok((negotiation, end));
        }
    }
}

/// Serves requests until the client goes.
async fn transmit(
    shared: Arc<Shared>,
    export: usize,
    is_structured: bool,
    input: &mut Input,
    to: &mut OwnedWriteHalf,
) -> Ended {
    let (ends, ended) = mpsc::unbounded_channel();
    let session = RefCell::new(Session::new(shared, export, is_structured, ends));
    let halves = Rc::new(Halves { session, leaves: Notify::new(), left: Notify::new() });
    tokio::select! {
        ended = read(&halves, input) => ended,
        ended = answer(&halves, to, ended) => ended,
    }
}

/// Reads requests until the connection ends or the client has said that it goes.
async fn read(halves: &Halves, input: &mut Input) -> Ended {
    loop {
        let mut unit = [0; REQUEST_BYTES];
        input.read_exact(&mut unit).await?;
        let request = Request::of(&unit).ok_or_else(|| broken("a request does not begin as one"))?;
        if request.command == command::DISCONNECT {
            halves.session.borrow_mut().is_over = true;
            halves.leaves.notify_one();
            // The writer ends the connection once the last reply has left.
            std::future::pending::<()>().await;
        }
        let is_write = request.command == command::WRITE;
        if is_write && request.bytes > PAYLOAD_MOST_BYTES {
            return Err(broken("a write is longer than 32 MiB"));
        }
        let taken = memory(halves, &request).await;
        let mut data = Vec::new();
        if is_write {
            data.resize(request.bytes as usize, 0);
            // They hold memory that others may wait for.
            let came = tokio::time::timeout(TAKE_MOST, input.read_exact(&mut data)).await;
            came.map_err(|_| broken("the data of a write did not come in time"))??;
        }
        halves.session.borrow_mut().begin(request, data, taken);
        halves.leaves.notify_one();
    }
}

/// Takes the memory that a request needs, once there is as much.
async fn memory(halves: &Halves, request: &Request) -> Taken {
    loop {
        {
            let session = halves.session.borrow();
            let needed = session.needed_bytes(request);
            if let Some(taken) = session.has_room().then(|| session.budget.take(needed)).flatten() {
                return taken;
            }
        }
        tokio::select! {
            () = halves.left.notified() => {}
            () = tokio::time::sleep(ASK_AGAIN) => {}
        }
    }
}

/// Takes the ends of I/Os, and writes the replies.
async fn answer(halves: &Halves, to: &mut OwnedWriteHalf, mut ended: mpsc::UnboundedReceiver<(u64, Done)>) -> Ended {
    loop {
        tokio::select! {
            Some((number, done)) = ended.recv() => halves.session.borrow_mut().ended(number, done),
            () = halves.leaves.notified() => {}
        }
        while let Ok((number, done)) = ended.try_recv() {
            halves.session.borrow_mut().ended(number, done);
        }
        loop {
            let replies: Vec<Reply> = {
                let mut session = halves.session.borrow_mut();
                let count = session.out.len().min(ANSWERS_AT_ONCE);
                session.out.drain(..count).collect()
            };
            if replies.is_empty() {
                break;
            }
            let parts = replies.iter().flat_map(|reply| [&reply.header[..], &reply.data]);
            let mut slices: Vec<IoSlice<'_>> = parts.map(IoSlice::new).collect();
            tokio::time::timeout(TAKE_MOST, write_all(to, &mut slices)).await??;
            drop(slices);
            drop(replies);
            halves.left.notify_one();
        }
        let session = halves.session.borrow();
        if session.is_over && session.is_done() {
            return Ok(());
        }
    }
}
