/* SPDX-License-Identifier: MIT */
/* A device's address space. The addresses that programs see are PROT_NONE; the payload of address a
 * lies in a second mapping at the same offset, committed by the system as it is touched.
 *
 * Capacity is counted in chunks of 2 MiB: a large range takes whole chunks, small ones share. */
#ifndef SIM_SPACE_H
#define SIM_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_CHUNK_BYTES ((size_t)2 << 20)
#define SIM_UNIT_BYTES  ((size_t)512)

/* Reserves the space of every device; false when the system refuses. */
bool sim_space_init(void);
/* false: the device is full. The rounded size is what give wants back. */
bool sim_space_take(int device, size_t size_bytes, uint64_t *address_out, size_t *rounded_out);
void sim_space_give(int device, uint64_t address, size_t rounded_bytes);
size_t sim_space_free_bytes(int device);
size_t sim_space_total_bytes(int device);
/* Addresses alone, with nothing behind them, for memory that is counted and placed otherwise. */
bool sim_space_reserve(size_t size_bytes, size_t alignment, uint64_t *address_out);
void sim_space_unreserve(uint64_t address, size_t size_bytes);
/* Counts memory that lies elsewhere as used. */
bool sim_space_commit(int device, size_t size_bytes);
void sim_space_uncommit(int device, size_t size_bytes);
/* The device whose space holds the address, or -1 (0 for reserved addresses);
 * and where its payload lies. */
int sim_space_device_of(uint64_t address);
char *sim_space_payload(uint64_t address);
/* The units of all devices, numbered through, and that of an address; false for an address outside
 * their own space, reserved ones included. */
size_t sim_space_units(void);
bool sim_space_locate(uint64_t address, size_t *unit_out);

#endif
