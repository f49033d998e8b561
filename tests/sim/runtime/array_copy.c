/* SPDX-License-Identifier: MIT */
/* Copies to and from arrays. */
#include "driver.h"
#include "rt_api.h"

/* The array's side of a plane; the other side is filled in by the caller. */
static CUDA_MEMCPY2D to_array(cudaArray_t dst, size_t x, size_t y, const void *src, size_t pitch,
                              size_t width, size_t height)
{
    return (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .srcDevice = (CUdeviceptr)src,
                           .srcPitch = pitch,
                           .dstXInBytes = x,
                           .dstY = y,
                           .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                           .dstArray = (CUarray)dst,
                           .WidthInBytes = width,
                           .Height = height};
}

static CUDA_MEMCPY2D from_array(void *dst, size_t pitch, cudaArray_const_t src, size_t x, size_t y,
                                size_t width, size_t height)
{
    return (CUDA_MEMCPY2D){.srcXInBytes = x,
                           .srcY = y,
                           .srcMemoryType = CU_MEMORYTYPE_ARRAY,
                           .srcArray = (CUarray)src,
                           .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .dstDevice = (CUdeviceptr)dst,
                           .dstPitch = pitch,
                           .WidthInBytes = width,
                           .Height = height};
}

cudaError_t rt_cudaMemcpy2DToArray(cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src,
                                   size_t spitch, size_t width, size_t height,
                                   enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY2D copy = to_array(dst, wOffset, hOffset, src, spitch, width, height);

    (void)kind;
    RT_CALL(cuMemcpy2DUnaligned, &copy);
}

cudaError_t rt_cudaMemcpy2DToArrayAsync(cudaArray_t dst, size_t wOffset, size_t hOffset,
                                        const void *src, size_t spitch, size_t width, size_t height,
                                        enum cudaMemcpyKind kind, cudaStream_t stream)
{
    CUDA_MEMCPY2D copy = to_array(dst, wOffset, hOffset, src, spitch, width, height);

    (void)kind;
    RT_CALL(cuMemcpy2DAsync, &copy, stream);
}

cudaError_t rt_cudaMemcpy2DFromArray(void *dst, size_t dpitch, cudaArray_const_t src,
                                     size_t wOffset, size_t hOffset, size_t width, size_t height,
                                     enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY2D copy = from_array(dst, dpitch, src, wOffset, hOffset, width, height);

    (void)kind;
    RT_CALL(cuMemcpy2DUnaligned, &copy);
}

cudaError_t rt_cudaMemcpy2DFromArrayAsync(void *dst, size_t dpitch, cudaArray_const_t src,
                                          size_t wOffset, size_t hOffset, size_t width,
                                          size_t height, enum cudaMemcpyKind kind,
                                          cudaStream_t stream)
{
    CUDA_MEMCPY2D copy = from_array(dst, dpitch, src, wOffset, hOffset, width, height);

    (void)kind;
    RT_CALL(cuMemcpy2DAsync, &copy, stream);
}

/* So many bytes are whole rows, or a part of one. */
static size_t row_bytes(cudaArray_const_t array, size_t count)
{
    CUDA_ARRAY3D_DESCRIPTOR description = {0};

    if (rt_array_get_description(array, &description) != cudaSuccess) {
        return count;
    }
    size_t row = description.Width * rt_array_element_bytes(array);
    return row != 0 && count % row == 0 ? row : count;
}

cudaError_t rt_cudaMemcpy2DArrayToArray(cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst,
                                        cudaArray_const_t src, size_t wOffsetSrc, size_t hOffsetSrc,
                                        size_t width, size_t height, enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY2D copy = from_array(NULL, 0, src, wOffsetSrc, hOffsetSrc, width, height);

    (void)kind;
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.dstArray = (CUarray)dst;
    copy.dstXInBytes = wOffsetDst;
    copy.dstY = hOffsetDst;
    RT_CALL(cuMemcpy2DUnaligned, &copy);
}

cudaError_t rt_cudaMemcpyArrayToArray(cudaArray_t dst, size_t wOffsetDst, size_t hOffsetDst,
                                      cudaArray_const_t src, size_t wOffsetSrc, size_t hOffsetSrc,
                                      size_t count, enum cudaMemcpyKind kind)
{
    size_t row = row_bytes(src, count);

    if (count == 0) {
        return rt_enter();
    }
    return rt_cudaMemcpy2DArrayToArray(dst, wOffsetDst, hOffsetDst, src, wOffsetSrc, hOffsetSrc,
                                       row, count / row, kind);
}

cudaError_t rt_cudaMemcpyToArrayAsync(cudaArray_t dst, size_t wOffset, size_t hOffset,
                                      const void *src, size_t count, enum cudaMemcpyKind kind,
                                      cudaStream_t stream)
{
    size_t row = row_bytes(dst, count);

    if (count == 0) {
        return rt_enter();
    }
    return rt_cudaMemcpy2DToArrayAsync(dst, wOffset, hOffset, src, row, row, count / row, kind,
                                       stream);
}

cudaError_t rt_cudaMemcpyFromArrayAsync(void *dst, cudaArray_const_t src, size_t wOffset,
                                        size_t hOffset, size_t count, enum cudaMemcpyKind kind,
                                        cudaStream_t stream)
{
    size_t row = row_bytes(src, count);

    if (count == 0) {
        return rt_enter();
    }
    return rt_cudaMemcpy2DFromArrayAsync(dst, row, src, wOffset, hOffset, row, count / row, kind,
                                         stream);
}

cudaError_t rt_cudaMemcpyToArray(cudaArray_t dst, size_t wOffset, size_t hOffset, const void *src,
                                 size_t count, enum cudaMemcpyKind kind)
{
    size_t row = row_bytes(dst, count);

    if (count == 0) {
        return rt_enter();
    }
    return rt_cudaMemcpy2DToArray(dst, wOffset, hOffset, src, row, row, count / row, kind);
}

cudaError_t rt_cudaMemcpyFromArray(void *dst, cudaArray_const_t src, size_t wOffset, size_t hOffset,
                                   size_t count, enum cudaMemcpyKind kind)
{
    size_t row = row_bytes(src, count);

    if (count == 0) {
        return rt_enter();
    }
    return rt_cudaMemcpy2DFromArray(dst, row, src, wOffset, hOffset, row, count / row, kind);
}
