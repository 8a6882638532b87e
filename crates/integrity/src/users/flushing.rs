use crate::{kernel::Kernel, user::User};

/// Makes all files durable, where writes are not so by themselves.
pub(crate) async fn flush_all(kernel: &Kernel, user: User) {
    if kernel.with(|core| core.plan.write_through) {
        return;
    }
    let files = kernel.with(|core| core.files.len() as u16);
    for file in 0..files {
        flush(kernel, file, user).await;
    }
}

/// Makes a file durable, where writes are not so by themselves; tells whether it is.
pub(crate) async fn flush(kernel: &Kernel, file: u16, user: User) -> bool {
    if kernel.with(|core| core.plan.write_through) {
        return true;
    }
    let number = kernel.with(|core| {
        core.ios.flushes = core.ios.flushes.wrapping_add(1);
        let number = core.ios.flushes;
        core.observe(|observer, _| observer.flushing(file, number));
        number
    });
    let end = kernel.flush(file, user).await;
    if end.result < 0 {
        kernel.flush_failed(file, -end.result, user);
    } else {
        kernel.with(|core| core.observe(|observer, _| observer.flushed(file, number)));
    }
    end.result >= 0
}
