"""The process groups that vLLM makes for each engine core, where the process is the only member.

vLLM makes about ten groups over gloo, and each has a thread that looks for news a hundred times a
second: two per cent of a core, for ever. A core that is alone in its group needs their sizes and
ranks and nothing else, so the connections are let go as soon as the core is built. The next core
begins with groups of its own.
"""

from __future__ import annotations

import torch
from vllm.distributed.parallel_state import (
    GroupCoordinator,
    destroy_distributed_environment,
    destroy_model_parallel,
    get_dcp_group,
    get_dp_group,
    get_ep_group,
    get_pcp_group,
    get_pp_group,
    get_tp_group,
    get_world_group,
    model_parallel_is_initialized,
)


def forget() -> None:
    """Forgets the groups of the cores before; to be called before a core is built.

    The cores themselves do not notice: until the new core has made its groups, none steps.
    """
    destroy_model_parallel()
    destroy_distributed_environment()


def disconnect() -> None:
    """Ends the connections of groups with one member; their sizes and ranks stay known."""
    if not model_parallel_is_initialized() or get_world_group().world_size > 1:
        return
    for group in (
        get_tp_group(),
        get_pp_group(),
        get_dcp_group(),
        get_pcp_group(),
        get_dp_group(),
        get_world_group(),
        *_expert_groups(),
    ):
        group.destroy()
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def _expert_groups() -> list[GroupCoordinator]:
    """The group that vLLM makes for models with experts; none for others."""
    try:
        return [get_ep_group()]
    except AssertionError:
        return []
