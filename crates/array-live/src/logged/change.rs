//! Changes of a store. Each is in the journal before it is acknowledged.

use super::wire::{Reading, Writing};

/// New content of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    Zeroes,
    /// A content that the store has already, or that an earlier block of the same change brought.
    Known(u32),
    New(Stored),
}

/// A content in its stored form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) content: u32,
    pub(super) print: u128,
    pub(super) bytes: Vec<u8>,
}

/// Where a piece of a container lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) disk: u16,
    pub(super) slot: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    /// Blocks get these contents. Each block is named by its number over all volumes.
    Write(Vec<(u64, Source)>),
    /// Live contents move from their container into the open one.
    Move(Vec<(u32, Vec<u8>)>),
    /// The open container is full and on disks. A piece for which there was no disk is missing.
    Seal(Vec<Option<Piece>>),
    /// A missing piece of a container has been computed again, and lies at a new place.
    Restore {
        container: u32,
        number: u16,
        piece: Piece,
    },
    /// A disk is gone with all that was on it. `restores` says whether missing pieces are restored on other disks
    /// from now on.
    Pull {
        disk: u16,
        restores: bool,
    },
    /// An empty slot gets an empty disk. Missing pieces are restored from now on.
    Insert {
        disk: u16,
    },
    Snapshot {
        name: String,
    },
    Revert {
        name: String,
    },
    Attribute {
        volume: u16,
        name: String,
        value: Option<Vec<u8>>,
    },
}

impl Change {
    pub(super) fn write(&self, out: &mut Writing) {
        match self {
            Self::Write(blocks) => {
                out.byte(0);
                out.word(blocks.len() as u32);
                for (block, source) in blocks {
                    out.long(*block);
                    write_source(source, out);
                }
            }
            Self::Move(contents) => {
                out.byte(1);
                out.word(contents.len() as u32);
                for (content, bytes) in contents {
                    out.word(*content);
                    out.bytes(bytes);
                }
            }
            Self::Seal(pieces) => {
                out.byte(2);
                write_pieces(pieces, out);
            }
            Self::Restore { container, number, piece } => {
                out.byte(3);
                out.word(*container);
                out.short(*number);
                out.short(piece.disk);
                out.word(piece.slot);
            }
            Self::Pull { disk, restores } => {
                out.byte(4);
                out.short(*disk);
                out.byte((*restores).into());
            }
            Self::Insert { disk } => {
                out.byte(5);
                out.short(*disk);
            }
            Self::Snapshot { name } => {
                out.byte(6);
                out.bytes(name.as_bytes());
            }
            Self::Revert { name } => {
                out.byte(7);
                out.bytes(name.as_bytes());
            }
            Self::Attribute { volume, name, value } => {
                out.byte(8);
                out.short(*volume);
                out.bytes(name.as_bytes());
                out.byte(value.is_some().into());
                out.bytes(value.as_deref().unwrap_or_default());
            }
        }
    }

    pub(super) fn read(from: &mut Reading<'_>) -> Option<Self> {
        Some(match from.byte()? {
            0 => {
                let count = from.word()?;
                Self::Write((0..count).map(|_| Some((from.long()?, read_source(from)?))).collect::<Option<_>>()?)
            }
            1 => {
                let count = from.word()?;
                Self::Move((0..count).map(|_| Some((from.word()?, from.bytes()?.to_vec()))).collect::<Option<_>>()?)
            }
            2 => Self::Seal(read_pieces(from)?),
            3 => {
                let (container, number) = (from.word()?, from.short()?);
                Self::Restore { container, number, piece: Piece { disk: from.short()?, slot: from.word()? } }
            }
            4 => Self::Pull { disk: from.short()?, restores: from.byte()? != 0 },
            5 => Self::Insert { disk: from.short()? },
            6 => Self::Snapshot { name: from.text()? },
            7 => Self::Revert { name: from.text()? },
            8 => {
                let (volume, name) = (from.short()?, from.text()?);
                let is_set = from.byte()? != 0;
                let value = from.bytes()?.to_vec();
                Self::Attribute { volume, name, value: is_set.then_some(value) }
            }
            _ => return None,
        })
    }
}

fn write_source(source: &Source, out: &mut Writing) {
    match source {
        Source::Zeroes => out.byte(0),
        Source::Known(content) => {
            out.byte(1);
            out.word(*content);
        }
        Source::New(Stored { content, print, bytes }) => {
            out.byte(2);
            out.word(*content);
            out.print(*print);
            out.bytes(bytes);
        }
    }
}

fn read_source(from: &mut Reading<'_>) -> Option<Source> {
    Some(match from.byte()? {
        0 => Source::Zeroes,
        1 => Source::Known(from.word()?),
        2 => {
            let (content, print) = (from.word()?, from.print()?);
            Source::New(Stored { content, print, bytes: from.bytes()?.to_vec() })
        }
        _ => return None,
    })
}

const MISSING: u16 = u16::MAX;

pub(super) fn write_pieces(pieces: &[Option<Piece>], out: &mut Writing) {
    out.byte(pieces.len() as u8);
    for piece in pieces {
        let Piece { disk, slot } = piece.unwrap_or(Piece { disk: MISSING, slot: 0 });
        out.short(disk);
        out.word(slot);
    }
}

pub(super) fn read_pieces(from: &mut Reading<'_>) -> Option<Vec<Option<Piece>>> {
    let count = from.byte()?;
    let piece = |_| {
        let piece = Piece { disk: from.short()?, slot: from.word()? };
        Some((piece.disk != MISSING).then_some(piece))
    };
    (0..count).map(piece).collect()
}
