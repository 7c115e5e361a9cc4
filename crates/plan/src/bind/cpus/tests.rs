//! CPU choices on two machines on paper.

use super::choose;
use crate::bind::{NotApplicable, Refusal};
use crate::fixtures::{Scene, two_cpus, two_sockets};
use crate::scenario::CpuChoice::{CrossSocket, SameCore, SameLlc, Spread};
use crate::scenario::{Case, CpuChoice};
use crate::topology::Topology;
use crate::units::CpuId;

fn role(workers: u32, choice: CpuChoice) -> Scene {
    Scene::new().field("x").role("first", workers, &["add x"]).on(choice)
}

fn then(scene: Scene, workers: u32, choice: CpuChoice) -> Scene {
    let name = format!("role{}", scene.0.roles.len());
    scene.role(&name, workers, &["load x"]).on(choice)
}

fn chosen(scene: &Scene, machine: &Topology) -> Vec<u32> {
    choose(&scene.0, machine).unwrap().into_iter().map(|CpuId(id)| id).collect()
}

fn why_not(case: &Case, machine: &Topology) -> String {
    match choose(case, machine) {
        Err(Refusal::Machine(NotApplicable { why })) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn spread_goes_round_sockets_then_caches_then_cores_then_siblings() {
    let order = [0, 4, 2, 6, 1, 5, 3, 7, 8, 12, 10, 14, 9, 13, 11, 15];
    assert_eq!(chosen(&role(16, Spread), &two_sockets()), order);
}

#[test]
fn a_later_role_avoids_what_is_taken() {
    assert_eq!(chosen(&then(role(1, Spread), 1, Spread), &two_cpus()), [0, 1]);
    assert_eq!(chosen(&then(role(2, SameCore), 2, Spread), &two_sockets()), [0, 8, 4, 6]);
}

#[test]
fn unusable_cpus_are_not_taken() {
    let mut machine = two_sockets();
    for id in [0, 4, 8] {
        machine.cpus[id].usable = false;
    }
    assert_eq!(chosen(&role(3, Spread), &machine), [1, 5, 2]);
    assert_eq!(chosen(&role(2, SameCore), &machine), [1, 9]);
}

#[test]
fn same_core_takes_the_threads_of_one_core() {
    assert_eq!(chosen(&role(2, SameCore), &two_sockets()), [0, 8]);
    assert_eq!(chosen(&then(role(2, SameCore), 2, SameCore), &two_sockets()), [0, 8, 1, 9]);
    assert!(why_not(&role(2, SameCore).0, &two_cpus()).contains("needs 2 hardware threads of one core"));
    assert!(why_not(&role(3, SameCore).0, &two_sockets()).contains("has 2 free at most"));
}

#[test]
fn same_llc_takes_distinct_cores_of_one_cache() {
    assert_eq!(chosen(&role(2, SameLlc), &two_sockets()), [0, 1]);
    assert_eq!(chosen(&role(2, SameLlc), &two_cpus()), [0, 1]);
    assert!(why_not(&role(3, SameLlc).0, &two_sockets()).contains("needs 3 cores of one last-level cache"));
}

#[test]
fn cross_socket_alternates() {
    assert_eq!(chosen(&role(4, CrossSocket), &two_sockets()), [0, 4, 2, 6]);
    let why = why_not(&role(2, CrossSocket).0, &two_cpus());
    assert!(why.contains("2 sockets; the machine has them on 1"), "{why}");
}

#[test]
fn cross_socket_starts_where_there_is_room() {
    let mut machine = two_sockets();
    for id in [0, 1, 2, 8, 9, 10, 11] {
        machine.cpus[id].usable = false;
    }
    assert_eq!(chosen(&role(3, CrossSocket), &machine), [4, 3, 6]);
}

#[test]
fn a_role_of_one_worker_relates_to_the_worker_before_it() {
    let pair = |choice: CpuChoice| then(role(1, choice.clone()), 1, choice);
    assert_eq!(chosen(&pair(SameCore), &two_sockets()), [0, 8]);
    assert_eq!(chosen(&pair(SameLlc), &two_sockets()), [0, 1]);
    assert_eq!(chosen(&pair(CrossSocket), &two_sockets()), [0, 4]);
    assert_eq!(chosen(&pair(SameLlc), &two_cpus()), [0, 1]);
    assert!(why_not(&pair(SameCore).0, &two_cpus()).contains("role `role1` asks for `same-core`"));
    assert!(why_not(&pair(CrossSocket).0, &two_cpus()).contains("`cross-socket`"));
}

#[test]
fn lists_take_their_cpus_before_anyone_chooses() {
    let scene = role(1, Spread).role("fixed", 1, &["load x"]).list(&[0]);
    assert_eq!(chosen(&scene, &two_cpus()), [1, 0]);
}

#[test]
fn too_few_cpus_say_how_many_and_what_would_help() {
    let why = why_not(&role(4, Spread).0, &two_cpus());
    assert_eq!(why, "needs 4 CPUs, this host has 2 usable; `oversubscribe = true` would share them");
}

#[test]
fn oversubscribed_workers_go_round() {
    assert_eq!(chosen(&role(5, Spread).oversubscribed(), &two_cpus()), [0, 1, 0, 1, 0]);
    assert_eq!(chosen(&role(3, SameCore).oversubscribed(), &two_sockets()), [0, 8, 0]);
    assert_eq!(chosen(&role(3, SameLlc).oversubscribed(), &two_cpus()), [0, 1, 0]);
    let listed = Scene::new().field("x").role("first", 3, &["add x"]).list(&[1, 0]).oversubscribed();
    assert_eq!(chosen(&listed, &two_cpus()), [1, 0, 1]);
}

#[test]
fn oversubscribing_does_not_make_up_a_sibling_or_a_socket() {
    assert!(why_not(&role(2, SameCore).oversubscribed().0, &two_cpus()).contains("`same-core`"));
    assert!(why_not(&role(2, CrossSocket).oversubscribed().0, &two_cpus()).contains("`cross-socket`"));
}

#[test]
fn a_machine_without_a_usable_cpu_places_nothing() {
    let mut machine = two_cpus();
    machine.cpus.iter_mut().for_each(|cpu| cpu.usable = false);
    assert!(why_not(&role(1, Spread).oversubscribed().0, &machine).contains("may use none"));
}
