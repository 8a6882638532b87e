//! The decision table of docs/integrity.md: from the units of a page to the names of its faults.

use crate::{Fault, stamp::Unit};

/// Name of a page's fault, and the names it cannot be told apart from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub fault: Fault,
    pub also: Vec<Fault>,
}

/// Names the fault that units show. `log`: the page is a log block. `persistent`: every read showed the same.
/// `generation`: the expected generation.
pub(crate) fn name(units: &[Unit], generation: u32, log: bool, persistent: bool) -> Vec<Named> {
    let any = |wanted: fn(&Unit) -> bool| units.iter().any(wanted);
    let mut names = Vec::new();
    let mut add = |fault, also: &[Fault]| names.push(Named { fault, also: also.to_vec() });
    if any(|unit| *unit == Unit::NotRead) {
        add(Fault::ShortRead, &[]);
    }
    if any(|unit| matches!(unit, Unit::Corrupt { .. })) {
        add(Fault::Corrupt, &[]);
    }
    if any(|unit| matches!(unit, Unit::Foreign(_))) {
        add(if persistent { Fault::MisdirectedWrite } else { Fault::MisdirectedRead }, &[]);
    }
    if any(|unit| matches!(unit, Unit::Older { .. } | Unit::Known)) {
        let newest = Unit::Corrupt { generation: Some(generation) };
        if units.iter().any(|unit| *unit == Unit::Expected || *unit == newest) {
            add(Fault::Torn, &[]);
        } else {
            let mut also = if persistent { vec![Fault::MisdirectedWrite] } else { Vec::new() };
            // What cannot be read any more may have been of the expected generation.
            if any(|unit| *unit == Unit::Corrupt { generation: None }) {
                also.push(Fault::Torn);
            }
            add(stale(log), &also);
        }
    }
    names
}

/// Name of a page that holds nothing of its last write.
pub(crate) fn stale(log: bool) -> Fault {
    if log { Fault::LogBreak } else { Fault::Lost }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamp::{Origin, PageId};

    const OLDER: Unit = Unit::Older { generation: 4 };
    const FOREIGN: Unit = Unit::Foreign(Some(Origin { id: PageId { file: 0, page: 9 }, generation: 1, unit: 0 }));

    fn names(units: &[Unit], log: bool, persistent: bool) -> Vec<(Fault, Vec<Fault>)> {
        name(units, 5, log, persistent).into_iter().map(|named| (named.fault, named.also)).collect()
    }

    #[test]
    fn every_row_of_the_table() {
        use Fault::*;
        let corrupt = Unit::Corrupt { generation: None };
        let right = Unit::Expected;
        for persistent in [false, true] {
            let lost_as = if persistent { vec![MisdirectedWrite] } else { vec![] };
            let foreign_as = if persistent { MisdirectedWrite } else { MisdirectedRead };
            assert_eq!(names(&[right, Unit::NotRead], false, persistent), [(ShortRead, vec![])]);
            assert_eq!(names(&[right, corrupt], false, persistent), [(Corrupt, vec![])]);
            assert_eq!(names(&[right, FOREIGN], false, persistent), [(foreign_as, vec![])]);
            assert_eq!(names(&[right, OLDER], false, persistent), [(Torn, vec![])]);
            assert_eq!(names(&[OLDER, OLDER], false, persistent), [(Lost, lost_as.clone())]);
            assert_eq!(names(&[OLDER], true, persistent), [(LogBreak, lost_as)]);
        }
        assert_eq!(names(&[right, right], false, true), []);
        assert_eq!(names(&[Unit::Known, Unit::Known], false, false), [(Lost, vec![])]);
    }

    #[test]
    fn several_faults_on_one_page_have_a_name_each() {
        use Fault::*;
        let known = Unit::Corrupt { generation: Some(4) };
        assert_eq!(names(&[OLDER, known], false, true), [(Corrupt, vec![]), (Lost, vec![MisdirectedWrite])]);
        let unknown = Unit::Corrupt { generation: None };
        assert_eq!(names(&[OLDER, unknown], false, true), [(Corrupt, vec![]), (Lost, vec![MisdirectedWrite, Torn])]);
        let newest = Unit::Corrupt { generation: Some(5) };
        assert_eq!(names(&[OLDER, newest], false, true), [(Corrupt, vec![]), (Torn, vec![])]);
    }
}
