"""The constraint R-tree as published: an R-tree whose nodes know the `disjoint` constraints below them.

Insertion and deletion are Guttman's (1984): the child that must grow least, a split of quadratic cost, and on deletion
nodes that became too empty are dissolved and their children inserted again, at the height they had. A search goes
where the box of the message's region meets the box of a node. Where it does not, all `disjoint` constraints below
hold, and no other does. In a leaf the boxes decide which constraints are evaluated at all
(`matcher.box_relations`: the published table loses matches, and is not used).

This is a reference to compare with, in plain Python. The index to use is `matcher.engines`.

Boxes are exact, evaluators need not be. Where an approximate evaluator contradicts the boxes it is not asked, and the
answer differs from that of `matcher.linear`; it is then the right one.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from matcher.box_relations import POSSIBLE, POSSIBLE_IF_SIMPLE, box_relation
from matcher.constraints import Evaluate
from matcher.planar import Box, PlanarRegion
from matcher.relations import relate
from matcher.selector.tree import Relation

__all__ = ["CrTree"]

K = TypeVar("K", bound=Hashable)


class _Entry(Generic[K]):
    """One constraint, in a leaf."""

    __slots__ = ("box", "disjoint", "id", "parent", "region", "relation")

    def __init__(self, id: K, relation: Relation, region: PlanarRegion) -> None:
        self.id, self.relation, self.region = id, relation, region
        self.box = region.box
        self.disjoint: dict[K, None] = {id: None} if relation == Relation.DISJOINT else {}
        self.parent: _Node[K] | None = None


class _Node(Generic[K]):
    """The children of a leaf, at level 0, are entries; those of others are nodes of the level below."""

    __slots__ = ("box", "children", "disjoint", "level", "parent")

    def __init__(self, level: int, children: "Iterable[_Child[K]]" = ()) -> None:
        self.level = level
        self.parent: _Node[K] | None = None
        self.take(children)

    def take(self, children: "Iterable[_Child[K]]") -> None:
        """Have these children and no others."""
        self.children: list[_Child[K]] = list(children)
        self.disjoint: dict[K, None] = {}  # a set that keeps its order: a run of the program gives the same answers
        for child in self.children:
            child.parent = self
            self.disjoint.update(child.disjoint)
        self.fit()

    def fit(self) -> None:
        """Make the box as small as the children allow."""
        self.box: Box = _NO_BOX
        for child in self.children:
            self.box = _around(self.box, child.box)


_Child = _Entry[K] | _Node[K]


class CrTree(Generic[K]):
    """Constraints that come and go. Ids are whatever the caller knows them by."""

    def __init__(self, evaluate: Evaluate = relate, max_entries: int = 8) -> None:
        if max_entries < 4:
            raise ValueError("a node that is split must leave two children in each half: max_entries is 4 at least")
        self._evaluate = evaluate
        self._most = max_entries
        self._least = max(2, max_entries * 2 // 5)
        self._root: _Node[K] = _Node(0)
        self._entries: dict[K, _Entry[K]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def insert(self, id: K, relation: Relation, region: PlanarRegion) -> None:
        """Keep a constraint; one that had the id goes."""
        if id in self._entries:
            self.remove(id)
        entry = self._entries[id] = _Entry(id, relation, region)
        self._put(entry, 0)

    def remove(self, id: K) -> None:
        """Forget a constraint; KeyError if there is none of that id."""
        self._take_out(self._entries.pop(id))
        while self._root.level and len(self._root.children) == 1:
            (only,) = self._root.children
            assert isinstance(only, _Node)
            only.parent = None
            self._root = only

    def search(self, region: PlanarRegion) -> set[K]:
        """The ids of the constraints that hold for this region."""
        return set(self.find(region))

    def find(self, region: PlanarRegion, is_wanted: Callable[[K], bool] | None = None) -> Iterator[K]:
        """The same one by one, as they are found. What is not wanted when its turn comes is not evaluated."""
        box, is_simple = region.box, region.is_simple
        nodes = [self._root]
        while nodes:
            for child in nodes.pop().children:
                if isinstance(child, _Entry):
                    if (is_wanted is None or is_wanted(child.id)) and self._holds(region, box, is_simple, child):
                        yield child.id
                elif _are_apart(box, child.box):
                    yield from child.disjoint
                else:
                    nodes.append(child)

    def _holds(self, region: PlanarRegion, box: Box, is_simple: bool, entry: _Entry[K]) -> bool:
        boxes = box_relation(box, entry.box)
        if boxes == Relation.DISJOINT:
            return entry.relation == Relation.DISJOINT
        table = POSSIBLE_IF_SIMPLE if is_simple and entry.region.is_simple else POSSIBLE
        return boxes in table[entry.relation] and self._evaluate(region, entry.region) == entry.relation

    # --- insertion ---------------------------------------------------------------------------------

    def _put(self, child: _Child[K], level: int) -> None:
        """Guttman's Insert: make it a child of a node of that level."""
        node = self._choose(child, level)
        node.children.append(child)
        child.parent = node
        above: _Node[K] | None = node
        while above is not None:
            above.box = _around(above.box, child.box)
            above.disjoint.update(child.disjoint)
            above = above.parent
        while len(node.children) > self._most:
            node = self._split(node)

    def _choose(self, child: _Child[K], level: int) -> _Node[K]:
        """ChooseLeaf: down to the level, each time to the node that must grow least, or is the smallest of such."""
        node = self._root
        while node.level > level:
            chosen = min(node.children, key=lambda candidate: (_growth(candidate.box, child.box), _area(candidate.box)))
            assert isinstance(chosen, _Node)
            node = chosen
        return node

    def _split(self, node: _Node[K]) -> _Node[K]:
        """Give half of the children to a new neighbour; the node that has one child more now."""
        parent = node.parent
        if parent is None:
            parent = self._root = _Node(node.level + 1, [node])
        one, other = _halves(node.children, self._least)
        node.take(one)
        beside = _Node(node.level, other)
        beside.parent = parent
        parent.children.append(beside)
        return parent

    # --- deletion ----------------------------------------------------------------------------------

    def _take_out(self, entry: _Entry[K]) -> None:
        """Guttman's Delete and CondenseTree."""
        dissolved: list[_Node[K]] = []
        gone: _Child[K] | None = entry
        forgotten = dict(entry.disjoint)  # what the nodes above no longer have below them
        node = entry.parent
        while node is not None:
            parent = node.parent
            if gone is not None:
                node.children.remove(gone)
            for id in forgotten:
                del node.disjoint[id]
            if parent is not None and len(node.children) < self._least:
                dissolved.append(node)
                gone = node
                forgotten.update(node.disjoint)
            else:
                gone = None
                node.fit()
            node = parent
        for orphans in reversed(dissolved):  # subtrees before entries: they need a tree as high as it was
            for child in orphans.children:
                self._put(child, orphans.level)


def _halves(children: Sequence[_Child[K]], least: int) -> tuple[list[_Child[K]], list[_Child[K]]]:
    """Guttman's quadratic split: two children that would waste most together, then always the most decided one."""
    rest = list(children)
    seeds, worst = (0, 1), float("-inf")
    for i, first in enumerate(rest):
        for j in range(i + 1, len(rest)):
            waste = _growth(first.box, rest[j].box) - _area(rest[j].box)
            if waste > worst:
                seeds, worst = (i, j), waste
    other = [rest.pop(seeds[1])]
    one = [rest.pop(seeds[0])]
    one_box, other_box = one[0].box, other[0].box
    while rest:
        if len(one) + len(rest) == least:
            return one + rest, other
        if len(other) + len(rest) == least:
            return one, other + rest
        chosen, decided = 0, -1.0
        for index, child in enumerate(rest):
            difference = abs(_growth(one_box, child.box) - _growth(other_box, child.box))
            if difference > decided:
                chosen, decided = index, difference
        child = rest.pop(chosen)
        to_one = (_growth(one_box, child.box), _area(one_box), len(one))
        if to_one < (_growth(other_box, child.box), _area(other_box), len(other)):
            one.append(child)
            one_box = _around(one_box, child.box)
        else:
            other.append(child)
            other_box = _around(other_box, child.box)
    return one, other


# Areas only guide: where they overflow or vanish the tree gets worse, not wrong.

_NO_BOX: Box = (float("inf"), float("inf"), float("-inf"), float("-inf"))  # what nothing is in: the least of all


def _around(a: Box, b: Box) -> Box:
    return min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3])


def _area(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def _growth(box: Box, added: Box) -> float:
    return _area(_around(box, added)) - _area(box)


def _are_apart(a: Box, b: Box) -> bool:
    return a[2] < b[0] or a[0] > b[2] or a[3] < b[1] or a[1] > b[3]
