// Nothing of this library is destroyed at the end of the process.
//
// LLVM makes tables when it first needs them, on any thread that compiles. At exit they would be
// destroyed in the reverse order, before a compilation on another thread is asked to end. The
// library is never unloaded either, so its own registrations are dropped, too. The symbol is
// hidden (exports.map): the rest of the process has the C library's.
extern "C" int __cxa_atexit(void (*)(void*), void*, void*) noexcept { return 0; }
