// Nothing of this library is destroyed at the end of the process.
//
// LLVM makes tables when it first needs them, on whichever thread compiles, and would have them
// destroyed at exit, in the reverse order: before a compilation on another thread is told to end.
// The library is never unloaded either, so what its own code registers is forgotten. The symbol is
// hidden (exports.map): the rest of the process has the C library's.
extern "C" int __cxa_atexit(void (*)(void*), void*, void*) noexcept { return 0; }
