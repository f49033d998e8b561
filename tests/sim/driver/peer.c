/* SPDX-License-Identifier: MIT */
/* Peer access between contexts: only its state. Every device reaches every other one's memory. */
#include "config.h"
#include "context.h"
#include "sim_api.h"

CUresult sim_cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev)
{
    CUresult result = sim_check_device(dev);

    if (result == CUDA_SUCCESS) {
        result = sim_check_device(peerDev);
    }
    if (result == CUDA_SUCCESS && canAccessPeer == NULL) {
        result = CUDA_ERROR_INVALID_VALUE;
    }
    if (result == CUDA_SUCCESS) {
        *canAccessPeer = dev != peerDev;
    }
    return result;
}

CUresult sim_cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attrib, CUdevice srcDevice,
                                     CUdevice dstDevice)
{
    CUresult result = sim_check_device(srcDevice);

    if (result == CUDA_SUCCESS) {
        result = sim_check_device(dstDevice);
    }
    if (result == CUDA_SUCCESS && (value == NULL || srcDevice == dstDevice)) {
        result = value == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
    }
    if (result == CUDA_SUCCESS) {
        *value = attrib == CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED;
    }
    return result;
}

static CUresult find_peer(CUcontext peer, struct CUctx_st **context_out)
{
    CUresult result = sim_enter(context_out);

    if (result == CUDA_SUCCESS && sim_context_of(peer) == NULL) {
        result = CUDA_ERROR_INVALID_CONTEXT;
    }
    if (result == CUDA_SUCCESS && peer->device == (*context_out)->device) {
        result = CUDA_ERROR_INVALID_DEVICE;
    }
    return result;
}

CUresult sim_cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags)
{
    struct CUctx_st *context;
    CUresult result = find_peer(peerContext, &context);

    if (result != CUDA_SUCCESS || Flags != 0) {
        return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
    }
    if ((context->peers & (1u << peerContext->device)) != 0) {
        return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    }
    context->peers |= 1u << peerContext->device;
    return CUDA_SUCCESS;
}

CUresult sim_cuCtxDisablePeerAccess(CUcontext peerContext)
{
    struct CUctx_st *context;
    CUresult result = find_peer(peerContext, &context);

    if (result != CUDA_SUCCESS) {
        return result;
    }
    if ((context->peers & (1u << peerContext->device)) == 0) {
        return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    }
    context->peers &= ~(1u << peerContext->device);
    return CUDA_SUCCESS;
}
