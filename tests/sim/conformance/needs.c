/* SPDX-License-Identifier: MIT */
/* Rules, or whole areas of them, that speak of functions which older drivers lack: the driver's
 * version they need. That this is the first that will do is checked by rules --needs. */
#include "rule.h"

#include <string.h>

static const struct {
    const char *rule;
    int driver;
} needs[] = {
    {"device.uuids_differ", 11040},
    {"graph.a_child_runs_where_it_stands", 11040},
    {"graph.a_launch_comes_after_its_stream", 11040},
    {"graph.a_launch_in_a_capture_is_a_child", 11040},
    {"graph.a_launch_runs_it", 11040},
    {"graph.an_exec_may_go_while_it_runs", 11040},
    {"graph.an_exec_outlives_its_graph", 11040},
    {"graph.arguments_are_those_of_the_capture", 11040},
    {"graph.event_nodes_record", 11040},
    {"graph.explicit_nodes_run_in_order", 11040},
    {"graph.host_functions_become_nodes", 11040},
    {"graph.it_runs_as_often_as_launched", 11040},
    {"graph.launches_of_one_exec_do_not_overlap", 11040},
    {"graph_memory.a_flag_frees_it_at_the_next_launch", 11040},
    {"graph_memory.a_graph_frees_once", 11040},
    {"graph_memory.a_second_launch_needs_it_freed", 11040},
    {"graph_memory.allocations_become_nodes", 11040},
    {"graph_memory.explicit_nodes_allocate", 11040},
    {"graph_memory.it_is_counted_and_trimmed", 11040},
    {"graph_memory.there_is_one_exec_at_a_time", 11040},
    {"graph_memory.what_is_not_freed_stays", 11040},
    {"graph_order.a_launch_is_ordered_like_its_stream", 11040},
    {"graph_order.edges_order", 11040},
    {"graph_order.edges_order_the_nodes_of_a_child", 11040},
    {"graph_order.nodes_of_a_child_do_not_meet_without_an_edge", 11040},
    {"graph_order.freed_memory_is_not_launched_on", 11040},
    {"graph_order.graph_memory_ends_at_its_free", 11040},
    {"graph_order.launches_of_one_exec_are_ordered", 11040},
    {"graph_order.nodes_without_an_edge_do_not_meet", 11040},
    {"graph_order.work_after_a_launch_needs_order", 11040},
    {"context.ids_are_new_after_a_reset", 12000},
    {"graph.an_exec_keeps_its_parameters", 12000},
    {"graph.an_update_needs_the_same_shape", 12000},
    {"graph.an_update_takes_new_parameters", 12000},
    {"graph.an_update_takes_other_children", 12000},
    {"graph.kernel_nodes_copy_their_arguments", 12000},
    {"graph.nodes_can_be_disabled", 12000},
    {"lookup.early_versions_get_early_forms", 12000},
    {"lookup.flags_choose_the_default_stream", 12000},
    {"lookup.functions_without_a_stream_have_one_form", 12000},
    {"lookup.the_runtime_hands_out_the_driver", 12000},
    {"lookup.the_version_chooses_the_form", 12000},
    {"lookup.unknown_names_are_not_found", 12000},
    {"lookup.versions_beyond_the_driver_are_refused", 12000},
    {"stream.every_thread_has_its_default_stream", 12000},
    {"stream.ids_are_never_used_again", 12000},
    {"stream.null_is_the_legacy_stream", 12000},
    {"capture.it_has_an_id_of_its_own", 12030},
    {"graph.a_capture_can_go_into_a_graph", 12030},
    {"graph.a_capture_tells_its_last_nodes", 12030},
    {"graph.an_edge_exists_once", 12030},
    {"graph.events_in_a_capture_are_edges", 12030},
    {"capture.a_context_event_breaks_any", 12050},
    {"capture.a_context_wait_breaks_any", 12050},
    {"context.created_ones_become_current", 12050},
    {"context.destroying_frees_its_memory", 12050},
    {"context.destroying_the_current_one_pops_it", 12050},
    {"context.pool_memory_survives_its_context", 12050},
    {"context.pop_uncovers_the_one_below", 12050},
    {"event.a_context_event_covers_every_stream", 12050},
    {"event.a_context_event_is_not_moved_by_later_work", 12050},
    {"event.a_context_event_needs_its_context", 12050},
    {"event.a_context_waits_with_all_streams", 12050},
    {"event.it_belongs_to_one_context", 12050},
    {"lookup.later_functions_need_later_versions", 12050},
    {"order.context_events_order_everything", 12050},
    {"runtime.it_leaves_a_current_context", 12050},
    {"green.a_free_waits_for_it", 12050},
    {"green.it_waits_with_all_its_streams", 12050},
    {"green.its_event_breaks_its_captures_alone", 12050},
    {"green.its_own_event_covers_nothing_else", 12050},
    {"green.its_streams_do_not_block", 12050},
    {"green.streams_know_it", 12050},
    {"green.streams_of_a_destroyed_one_are_gone", 12050},
    {"green.streams_of_two_are_not_ordered", 12050},
    {"green.synchronising_the_primary_waits_for_it", 12050},
    {"green.the_event_of_its_view_covers_nothing_else", 12050},
    {"green.the_primary_contexts_event_covers_it", 12050},
    {"green.each_has_an_id", 12090},
    {"conditional", 12030},
    {"node.events_of_nodes_can_be_changed", 11040},
    {"node.an_allocation_tells_its_address", 12030},
    {"node.one_call_adds_any_type", 12030},
    {"node.parameters_change_by_one_call", 12030},
    {"node.a_child_takes_new_parameters_of_equal_shape", 12030},
    {"word", 11070},
    {"word_order.early_forms_may_write_without_a_barrier", 12000},
    {"word_order", 11070},
    {"batch", 13000},
    {"managed.a_batch_prefetches_to_each_location", 13000},
    {"managed.batches_refuse_the_legacy_stream", 13000},
    {"managed.nobody_uses_what_is_discarded", 13000},
    {"managed", 12020},
    {"user_object.a_launch_keeps_it_to_its_end", 11070},
    {"user_object.an_update_takes_those_of_the_graph", 12000},
    {"user_object.an_exec_keeps_it_too", 11040},
    {"user_object", 11030},
    {"pool.a_location_names_it", 13000},
    {"pool.a_location_takes_another", 13000},
    {"graph.nodes_tell_their_parameters", 12000},
    {"graph.nodes_take_other_parameters", 12000},
    {"library", 12000},
};

/* Is that the rule, or its area? */
static int is_named(const struct rule *rule, const char *text)
{
    size_t length = strlen(rule->area);

    return strncmp(text, rule->area, length) == 0 &&
           (text[length] == '\0' ||
            (text[length] == '.' && strcmp(text + length + 1, rule->name) == 0));
}

int rule_driver_needed(const struct rule *rule)
{
    for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
        if (is_named(rule, needs[i].rule)) {
            return needs[i].driver;
        }
    }
    return 0;
}
