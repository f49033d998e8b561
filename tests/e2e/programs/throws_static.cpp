// SPDX-License-Identifier: MIT
// The same in one program, with an unwinder of its own inside.
#include <cstdio>

extern "C" int throw_often(int times);
extern "C" int end_threads(int times);

int main()
{
    std::printf("thrown %d\n", throw_often(200));
    std::printf("ended %d\n", end_threads(20));
    return 3;
}
