// Uses up the memory in small pieces, catches the exception and gives all back. For a program that opens it.
#include <new>

struct Piece {
    Piece *next;
    char data[24];
};

extern "C" int use_up() {
    Piece *all = nullptr;
    bool is_caught = false;
    try {
        for (;;) all = new Piece{all, {}};
    } catch (const std::bad_alloc &) {
        is_caught = true;
    }
    while (all) {
        Piece *next = all->next;
        delete all;
        all = next;
    }
    return is_caught;
}
