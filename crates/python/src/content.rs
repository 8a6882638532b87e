//! Whether a file's bytes are such as Assay writes.

use std::{fs::File, io, os::unix::fs::FileExt};

use assay_integrity::is_stamped;
use assay_load::content::is_marked;

/// Bytes of one place: a page of the imitated database.
const PLACE_BYTES: usize = 8192;

/// First of the places in a file whose bytes are neither zeros, nor what load writes, nor a page or log block of `verify`.
///
/// # Errors
/// What read(2) reports.
pub(crate) fn first_foreign(file: &File, offsets: &[u64]) -> io::Result<Option<u64>> {
    let mut page = [0; PLACE_BYTES];
    for offset in offsets {
        let read = read_up_to(file, &mut page, *offset)?;
        if !is_marked(&page[..read]) && !is_stamped(&page[..read]) {
            return Ok(Some(*offset));
        }
    }
    Ok(None)
}

fn read_up_to(file: &File, page: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut read = 0;
    while read < page.len() {
        match file.read_at(&mut page[read..], offset + read as u64) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}
