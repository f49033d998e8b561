/* SPDX-License-Identifier: MIT */
/* cuGetProcAddress, driver versions, and functions taken away. */
#include "check.h"
#include "driver.h"
#include "sim.h"

#include <dlfcn.h>
#include <string.h>

static const char *name_of(void *function)
{
    Dl_info info;

    return dladdr(function, &info) != 0 && info.dli_sname != NULL ? info.dli_sname : "";
}

static void *ask(const char *base, int version, cuuint64_t flags)
{
    CUdriverProcAddressQueryResult status;
    void *function = &status;

    OK(cuGetProcAddress(base, &function, version, flags, &status));
    CHECK_EQ(status == CU_GET_PROC_ADDRESS_SUCCESS, function != NULL);
    return function;
}

static void versions_choose_the_form(void)
{
    CHECK(strcmp(name_of(ask("cuMemAlloc", 3020, 0)), "cuMemAlloc_v2") == 0);
    CHECK(strcmp(name_of(ask("cuMemAlloc", 2000, 0)), "cuMemAlloc") == 0);
    CHECK(strcmp(name_of(ask("cuMemAlloc", 13000, 0)), "cuMemAlloc_v2") == 0);
    CHECK(strcmp(name_of(ask("cuCtxSynchronize", 12000, 0)), "cuCtxSynchronize") == 0);
    CHECK(strcmp(name_of(ask("cuCtxSynchronize", 13000, 0)), "cuCtxSynchronize_v2") == 0);
    CHECK(strcmp(name_of(ask("cuGetProcAddress", 11030, 0)), "cuGetProcAddress") == 0);
    CHECK(strcmp(name_of(ask("cuGetProcAddress", 12000, 0)), "cuGetProcAddress_v2") == 0);
    CHECK(strcmp(name_of(ask("cuStreamBeginCapture", 10000, 0)), "cuStreamBeginCapture") == 0);
    CHECK(strcmp(name_of(ask("cuStreamBeginCapture", 10010, 0)), "cuStreamBeginCapture_v2") == 0);
    CHECK(strcmp(name_of(ask("cuDevicePrimaryCtxReset", 7000, 0)), "cuDevicePrimaryCtxReset") == 0);
}

static void flags_choose_the_default_stream(void)
{
    void *legacy = ask("cuMemcpyAsync", 7000, CU_GET_PROC_ADDRESS_LEGACY_STREAM);
    void *per_thread = ask("cuMemcpyAsync", 7000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);

    CHECK(legacy != per_thread);
    CHECK(strcmp(name_of(per_thread), "cuMemcpyAsync_ptsz") == 0);
    CHECK(legacy == dlsym(RTLD_DEFAULT, "cuMemcpyAsync"));
    CHECK(ask("cuMemAlloc", 3020, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) ==
          ask("cuMemAlloc", 3020, 0));
}

static void failures_are_told(void)
{
    CUdriverProcAddressQueryResult status;
    void *function;
    CUresult (*older)(const char *, void **, int, cuuint64_t) = (CUresult(*)(
        const char *, void **, int, cuuint64_t))dlsym(RTLD_DEFAULT, "cuGetProcAddress");

    OK(cuGetProcAddress("cuNoSuchThing", &function, 12000, 0, &status));
    CHECK(function == NULL);
    CHECK_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    OK(cuGetProcAddress("cuCtxRecordEvent", &function, 12000, 0, &status));
    CHECK(function == NULL);
    CHECK_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    OK(cuGetProcAddress("cuMemAlloc_v2", &function, 12000, 0, &status));
    CHECK(function == NULL);
    CHECK_EQ(cuGetProcAddress("cuMemAlloc", &function, 99000, 0, &status),
             CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuGetProcAddress(NULL, &function, 12000, 0, &status), CUDA_ERROR_INVALID_VALUE);
    OK(older("cuMemAlloc", &function, 11030, 0));
    CHECK(function != NULL);
    CHECK_EQ(older("cuNoSuchThing", &function, 11030, 0), CUDA_ERROR_NOT_FOUND);
}

static void check_written(const char *base, int version, cuuint64_t flags)
{
    const char *name = name_of(ask(base, version, flags));

    if (!simcuda_is_written(name)) {
        fprintf(stderr, "%s at %d leads to %s\n", base, version, name);
        CHECK(false);
    }
    CHECK(true);
}

static void nothing_a_runtime_asks_for_is_a_stub(void)
{
#define PLAIN(name, version)             check_written(#name, version, 1);
#define STREAM(name, version, other)     check_written(#name, version, 1);
#define PER_THREAD(name, version, other) check_written(#name, other > version ? other : version, 2);
    RT_DRIVER_FUNCTIONS(PLAIN)
    RT_STREAM_FUNCTIONS(STREAM)
    RT_STREAM_FUNCTIONS(PER_THREAD)
#undef PLAIN
#undef STREAM
#undef PER_THREAD
    check_written("cuCtxPushCurrent", 4000, 0);
    check_written("cuCtxPopCurrent", 4000, 0);
    check_written("cuCtxDestroy", 4000, 0);
    check_written("cuCtxRecordEvent", 12050, 0);
    check_written("cuDevicePrimaryCtxRelease", 7000, 0);
}

static void an_older_driver_lacks_newer_functions(void)
{
    CUdriverProcAddressQueryResult status;
    void *function;
    int version;

    OK(cuDriverGetVersion(&version));
    CHECK_EQ(version, 12040);
    OK(cuGetProcAddress("cuCtxRecordEvent", &function, 12040, 0, &status));
    CHECK(function == NULL);
    CHECK_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    CHECK_EQ(cuGetProcAddress("cuMemAlloc", &function, 12050, 0, &status),
             CUDA_ERROR_INVALID_VALUE);
    OK(cuInit(0));
    CHECK_EQ(cuCtxRecordEvent(NULL, NULL), CUDA_ERROR_NOT_SUPPORTED);
    CHECK_EQ(simcuda_unwritten(), 0);
    CHECK(strcmp(name_of(ask("cuCtxSynchronize", 12040, 0)), "cuCtxSynchronize") == 0);
}

static void single_functions_can_go(void)
{
    CUdriverProcAddressQueryResult status;
    void *function;

    OK(cuGetProcAddress("cuStreamGetId", &function, 13000, 0, &status));
    CHECK(function == NULL);
    CHECK(ask("cuStreamGetCtx", 13000, 0) != NULL);
    CHECK_EQ(cuCtxRecordEvent(NULL, NULL), CUDA_ERROR_NOT_SUPPORTED);
}

static void there_are_no_private_tables(void)
{
    const void *table;
    CUuuid id = {{1}};

    CHECK_EQ(cuGetExportTable(&table, &id), CUDA_ERROR_NOT_FOUND);
    CHECK(table == NULL);
}

static const struct check_case cases[] = {
    {"versions_choose_the_form", versions_choose_the_form, NULL, 0},
    {"flags_choose_the_default_stream", flags_choose_the_default_stream, NULL, 0},
    {"failures_are_told", failures_are_told, NULL, 0},
    {"nothing_a_runtime_asks_for_is_a_stub", nothing_a_runtime_asks_for_is_a_stub, NULL, 0},
    {"an_older_driver_lacks_newer_functions", an_older_driver_lacks_newer_functions,
     "SIMCUDA_DRIVER=12.4", 0},
    {"single_functions_can_go", single_functions_can_go,
     "SIMCUDA_WITHOUT=cuCtxRecordEvent,cuStreamGetId", 0},
    {"there_are_no_private_tables", there_are_no_private_tables, NULL, 0},
};

CHECK_MAIN(cases)
