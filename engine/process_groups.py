"""The process groups that vLLM makes for each engine core, where the process is the only member.

vLLM makes about ten groups over gloo, and each has a thread that looks for news a hundred times a
second: two per cent of a core, for ever. A core that is alone in its group needs their sizes and
ranks and nothing else, so the connections are let go as soon as the core is built. The next core
begins with groups of its own.
"""

from __future__ import annotations

import torch
from vllm.config import VllmConfig, set_current_vllm_config
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
from vllm.platforms import current_platform
from vllm.utils.network_utils import get_distributed_init_method, get_open_port
from vllm.v1.worker.gpu_worker import init_worker_distributed_environment

HOST = "127.0.0.1"


def forget() -> None:
    """Forgets the groups of the cores before; to be called before a core is built.

    The cores themselves do not notice: until the new core has made its groups, none steps.
    """
    destroy_model_parallel()
    destroy_distributed_environment()


def make_missing(vllm_config: VllmConfig) -> None:
    """Makes the groups that a core did not come to make, since its build failed before.

    The cores that live need them: each of their steps asks for sizes and ranks.

    Args:
        vllm_config: The configuration of the core that failed.
    """
    if model_parallel_is_initialized():
        return
    forget()  # of what may be there in part
    address = get_distributed_init_method(HOST, get_open_port())
    with set_current_vllm_config(vllm_config):
        init_worker_distributed_environment(
            vllm_config, 0, address, 0, current_platform.dist_backend
        )


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
