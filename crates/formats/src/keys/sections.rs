//! Keys of `[[task.section]]`.

use temponet_task::{Section, Time};

use super::task::OfTask;
use super::{Csv, Key, Kind, Plain, Spec, Table, set};
use crate::out::{text, time};

const SECTION_TABLE: &Kind = &Kind::Table(&SECTION);

/// Critical sections.
pub(crate) const SECTIONS: Key<OfTask> = Key::new(
    Spec::new(
        "section",
        Kind::List(SECTION_TABLE, 0, usize::MAX),
        "critical sections of its jobs, also as `[[task.section]]` tables",
    )
    .see("#critical-sections")
    .csv(Csv::Refused("the critical sections"))
    .example("[{ resource = \"bus\", at = \"2ms\", length = \"3ms\" }]"),
    |draft, given| {
        for item in given.items()? {
            let mut section = SectionDraft::default();
            SECTION.read(item.node, &mut section, given.with)?;
            draft.sections.push((section, item.node.line));
        }
        Ok(())
    },
    |set, task| SECTION.list(set, &task.sections),
);

/// A critical section with the name of its resource.
#[derive(Default)]
pub(crate) struct SectionDraft {
    pub resource: String,
    pub at: Time,
    pub length: Time,
}

/// Keys of `[[task.section]]`.
pub(crate) static SECTION: Table<Plain<SectionDraft, Section>> = Table {
    what: "section",
    keys: &[
        Key::new(
            Spec::new("resource", Kind::Name, "name of the resource, which tasks that name it share").required(),
            |section, given| set(&mut section.resource, given.printable()),
            |set, section| Some(text(&set.resources()[section.resource])),
        ),
        Key::new(
            Spec::new("at", Kind::Time, "work at which a job locks it").default("`0`"),
            |section, given| set(&mut section.at, given.time()),
            |_, section| Some(time(section.at)),
        ),
        Key::new(
            Spec::new("length", Kind::PositiveTime, "work until the job unlocks it").required(),
            |section, given| set(&mut section.length, given.time()),
            |_, section| Some(time(section.length)),
        ),
    ],
};
